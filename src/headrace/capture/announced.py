"""What a source database knows of cuts before they are pinned, which shows one that was put back.

A server that stands on an older copy of its disk has the identity that it had, and is as far as it
was once others have written enough: then ids that the last cut has seen stand for other
transactions. So an epoch is written there, on disk, after its snapshot was taken and before it is
pinned. Where it is found again, all that the snapshot saw is there, too.

    announced    pinned
    N            N          as it was left
    N + 1        N          the process ended in between
    less         N          the server was put back
    nothing      N          put back, or taken away: the source is copied again
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
    """Write down that sources (oids) are about to be pinned at an epoch; it is on disk then."""
    with database.session() as connection, translated(), connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = local")
        connection.execute(ANNOUNCE, {"oids": sorted(sources), "epoch": epoch})


def ask_announced(connection: Connection[Any]) -> Cursor[Any]:
    """Send the question; in a pipeline the answer is read later. Needs `capture_present`."""
    return connection.execute(ASK)


def was_put_back(announced: Mapping[int, int], epoch: int) -> bool:
    """Whether a database knows of cuts, and of none as late as the one that is pinned.

    One source that has it is enough: others may not have taken part in that cut.
    """
    return bool(announced) and max(announced.values()) < epoch
