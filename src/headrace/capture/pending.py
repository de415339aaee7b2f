"""The pending probe: a cheap query for changes that no cut has taken in.

The daemon runs the probe many times a second, so it reads only the buffers, and whether the tables
still exist. The other reasons to copy a source again are found by `pending`, which runs less often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Connection, errors, sql

from headrace.capture.changes import NEW
from headrace.capture.layout import buffer_name
from headrace.source.faults import translated

GONE = sql.SQL("SELECT count(*) < {number} FROM pg_class WHERE oid = ANY ({oids}::oid[])")


def question(oids: Sequence[int], snapshot: str) -> bytes:
    """Return the query for changes of these sources since the snapshot of the last cut.

    The query is returned as bytes: composing it takes longer than running it.
    """
    query = sql.SQL("SELECT EXISTS ({}) OR ({})").format(
        sql.SQL(" UNION ALL ").join(
            NEW.format(oid=sql.Literal(oid), buffer=buffer_name(oid), after=sql.Literal(snapshot))
            for oid in oids
        ),
        GONE.format(oids=sql.Literal(sorted(oids)), number=sql.Literal(len(oids))),
    )
    return query.as_bytes()


def has_pending_changes(connection: Connection[Any], asked: bytes) -> bool:
    """Return the answer to a `question`; True also where part of capture is gone."""
    try:
        row = connection.execute(asked).fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn):
        return True
    except errors.Error:
        with translated():
            raise
    return bool(row and row[0])
