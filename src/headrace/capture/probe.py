"""Rows of a source as they were at the last cut, found by PostgreSQL's own indexes.

No transaction has to stay open since the cut. One that is begun now sees the table as it is, and
beside it, in the buffer, every change since the cut:

    rows at the cut  =  rows now  −  changes that the cut does not see

The same questions that make a cut call a source dirty are asked in it, under a lock that keeps the
table from being truncated or rewritten: if changes do not lead from the cut to what is there now,
nothing is found. Neither is it where changes come from the log of the server.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import Connection, sql

from headrace.capture.changes import unseen
from headrace.capture.dirt import Captured, captured_part, reason_to_copy
from headrace.capture.health import ask_health, read_health
from headrace.capture.layout import buffer_sql
from headrace.errors import HeadraceError
from headrace.source.connection import Database
from headrace.source.introspect import ask_tables, read_tables
from headrace.source.reading import WEIGHT, has_misfit, read_sql, relation_sql, to_stored
from headrace.source.server_identity import IDENTITY
from headrace.source.table import SourceTable

# More changes than these since the cut are not worth being taken back.
MOST_PENDING = 10_000

INDEXED = """
SELECT i.indkey[0]::integer
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
    JOIN pg_class t ON t.oid = i.indrelid AND t.relkind = 'r'
WHERE i.indrelid = %s AND i.indisvalid AND i.indpred IS NULL AND a.amname IN ('btree', 'hash')
"""

MOMENT = sql.SQL("SELECT {}, pg_export_snapshot()").format(IDENTITY)
JOIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(frozen=True)
class LastCut:
    """The cut that rows are asked of: its snapshot and epoch, and the server it was taken of."""

    snapshot: str
    epoch: int
    system_identifier: str
    timeline: int


def probe(
    database: Database,
    source: Captured,
    cut: LastCut,
    column: str,
    values: Sequence[object],
    columns: Collection[str],
) -> pa.Table | None:
    """The weighted rows at the cut with one of the values in a column; None if nobody can tell.

    They have the named columns, and are not netted. `column` is physical and must lead an index;
    that, too, is None otherwise.
    """
    table = SourceTable(source.oid, source.schema, source.name, source.columns, source.keys)
    known = {one.physical: one for one in table.stored}
    wanted = [one for one in table.stored if one.physical in {*columns, column}]
    with database.session() as connection:
        try:
            joined = _begun(connection, source, cut, known[column].number)
            if joined is None:
                return None
            name = sql.Identifier(known[column].name)
            where = sql.SQL("{} = ANY ({})").format(name, sql.Literal(list(values))).as_string()
            now = read_sql(relation_sql(source.schema, source.name), wanted, where)
            pending = read_sql(
                buffer_sql(source.oid), wanted, unseen(cut.snapshot).as_string(), buffered=True
            )
            rows, changes = database.arrow_in(joined, now, pending)
        except (psycopg.Error, HeadraceError):
            # Something stands in the way, a lock for example: there are other ways to the rows.
            return None
        finally:
            with suppress(psycopg.Error):
                connection.rollback()
    if has_misfit(rows) or has_misfit(changes):
        return None
    rows, changes = to_stored(rows, wanted), to_stored(changes, wanted)
    one = pa.array(np.ones(rows.num_rows, np.int64))
    back = changes.set_column(0, WEIGHT, pc.negate(changes[WEIGHT]))
    back = back.filter(pc.is_in(back[column], pa.array(values, back[column].type)))
    return pa.concat_tables(
        [rows.add_column(0, WEIGHT, one), back.select([WEIGHT, *rows.column_names])]
    )


def _begun(connection: Connection[Any], source: Captured, cut: LastCut, number: int) -> str | None:
    """Begin a transaction that can tell; the name of its snapshot, None if it cannot."""
    connection.execute(JOIN)
    connection.execute("SET LOCAL lock_timeout = '50ms'")
    name = sql.Identifier(source.schema, source.name)
    connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(name))
    oids = [source.oid]
    with connection.pipeline():
        moment = connection.execute(MOMENT)
        tables_answer = ask_tables(connection, oids)
        health_answer = ask_health(connection, oids)
        leading = connection.execute(INDEXED, (source.oid,))
        many = connection.execute(
            sql.SQL("SELECT count(*) FROM (SELECT FROM {} WHERE {} LIMIT {}) AS p").format(
                sql.SQL(buffer_sql(source.oid)), unseen(cut.snapshot), MOST_PENDING + 1
            )
        )
    found = moment.fetchone()
    assert found is not None
    system_identifier, timeline, snapshot = found
    table = read_tables(tables_answer).get(source.oid)
    health = read_health(health_answer).get(source.oid)
    pending = many.fetchone()
    if (
        (system_identifier, timeline) != (cut.system_identifier, cut.timeline)
        or table is None
        or (table.schema, table.name) != (source.schema, source.name)
        or len(captured_part(source, table).stored)
        < sum(c.type is not None for c in source.columns)
        or reason_to_copy(source, table, health, cut.epoch) is not None
        or number not in {first for (first,) in leading}
        or pending is None
        or pending[0] > MOST_PENDING
    ):
        return None
    return str(snapshot)
