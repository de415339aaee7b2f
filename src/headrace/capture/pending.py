"""One cheap question: whether any source has changes that no cut has taken in.

It is asked many times a second, so it looks into the buffers, and whether the tables are still
there. The other reasons to copy a source again are found by `pending`, which is asked less often.
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
    """The question about these sources, since the snapshot of the last cut.

    It is text already: putting it together takes longer than asking it.
    """
    asked = sql.SQL("SELECT EXISTS ({}) OR ({})").format(
        sql.SQL(" UNION ALL ").join(
            NEW.format(oid=sql.Literal(oid), buffer=buffer_name(oid), after=sql.Literal(snapshot))
            for oid in oids
        ),
        GONE.format(oids=sql.Literal(sorted(oids)), number=sql.Literal(len(oids))),
    )
    return asked.as_bytes()


def has_news(connection: Connection[Any], asked: bytes) -> bool:
    """The answer; true also where part of capture is gone, which a cut finds out about."""
    try:
        row = connection.execute(asked).fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn):
        return True
    except errors.Error:
        with translated():
            raise
    return bool(row and row[0])
