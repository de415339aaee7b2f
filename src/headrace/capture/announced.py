"""Epochs announced in a source database before they are pinned, to detect a restored server.

A server restored from an older copy of its disk has the same identity, and reaches the earlier
position again once others have written enough: then transaction ids that the last cut has seen
belong to other transactions. So an epoch is written to the source database, on disk, after its
snapshot was taken and before it is pinned. A server with the epoch has all that the snapshot saw.

    announced    pinned
    N            N          unchanged
    N + 1        N          the process ended in between
    less         N          the server was restored
    nothing      N          restored, or capture was removed: the source is copied again
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from psycopg import Connection, Cursor, sql

from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.introspect import CAPTURE_SCHEMA

UNKNOWN = "the source database does not know of the last cut"

ASK = sql.SQL("SELECT source, epoch FROM {schema}.announced").format(
    schema=sql.Identifier(CAPTURE_SCHEMA)
)

ANNOUNCE = sql.SQL("""
INSERT INTO {schema}.announced (source, epoch)
SELECT unnest(%(oids)s::oid[]), %(epoch)s
ON CONFLICT (source) DO UPDATE SET epoch = EXCLUDED.epoch
""").format(schema=sql.Identifier(CAPTURE_SCHEMA))


def announce(database: Database, sources: Iterable[int], epoch: int) -> None:
    """Write to disk in the source database that sources (oids) are to be pinned at an epoch."""
    with database.session() as connection, translated(), connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = local")
        connection.execute(ANNOUNCE, {"oids": sorted(sources), "epoch": epoch})


def ask_announced(connection: Connection[Any]) -> Cursor[Any]:
    """Send the query for announced epochs; in a pipeline the answer is read later.

    Needs `capture_present`.
    """
    return connection.execute(ASK)


def was_restored(announced: Mapping[int, int], epoch: int) -> bool:
    """Return whether a database has announced cuts, but none as late as the pinned epoch.

    One source with the pinned epoch is enough: others may not have taken part in that cut.
    """
    return bool(announced) and max(announced.values()) < epoch
