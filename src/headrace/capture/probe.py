"""Index probes: rows of a source as they were at the last cut, by PostgreSQL's own indexes.

No transaction has to stay open since the cut. A transaction that is begun now sees the table as it
is, and every change since the cut in the buffer:

    rows at the cut  =  rows now  −  changes that the cut does not see

The transaction checks the reasons to recopy the source, under a lock that keeps the table from
being truncated or rewritten: if the buffered changes do not lead from the cut to the present rows,
or the source is in WAL mode, the probe returns None.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import Connection, sql

from headrace.capture.changes import unseen
from headrace.capture.health import ask_health, read_health
from headrace.capture.layout import buffer_sql
from headrace.capture.recopy_reasons import Captured, captured_part, reason_to_copy
from headrace.errors import HeadraceError
from headrace.source.connection import Database
from headrace.source.introspect import ask_tables, read_tables
from headrace.source.reading import WEIGHT, has_misfit, read_sql, relation_sql, to_stored
from headrace.source.rights import ask_rights, read_rights
from headrace.source.server import IDENTITY
from headrace.source.table import SourceColumn, SourceTable

# With more changes than these since the cut, other access paths cost less.
MOST_PENDING = 10_000

INDEXED = """
SELECT i.indkey[0]::integer
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
    JOIN pg_class t ON t.oid = i.indrelid AND t.relkind = 'r'
WHERE i.indrelid = %s AND i.indisvalid AND i.indpred IS NULL AND a.amname IN ('btree', 'hash')
"""

MOMENT = (
    sql.SQL("""
SELECT {}, pg_snapshot_xmax({{}}::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot()),
    pg_export_snapshot()
""")
    .format(IDENTITY)
    .as_string()
)
JOIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(frozen=True)
class LastCut:
    """The cut of which rows are requested: its snapshot and epoch, and its server."""

    snapshot: str
    epoch: int
    system_identifier: str
    timeline: int


def probe(
    database: Database,
    source: Captured,
    cut: LastCut,
    keys: Mapping[str, Sequence[int]],
    columns: Collection[str],
    most: int,
) -> pa.Table | None:
    """Return the weighted rows at the cut with one of the keys; None if the probe is impossible.

    `keys` are values of physical columns, of which the probe uses one that leads an index: a row is
    returned if it has one of the values there; the other columns are not compared. The rows have
    the named columns and those of the keys, and are not netted. If there are more than `most`, they
    are not complete.
    """
    table = SourceTable(source.oid, source.schema, source.name, source.columns, source.keys)
    needed_columns = [column for column in table.stored if column.physical in {*columns, *keys}]
    if any(column.type is not None and column.type.enum is not None for column in needed_columns):
        # Labels of enums are read as they are now, and may be renamed at any moment.
        return None
    try:
        with database.session() as connection:
            try:
                begun = _begun(connection, source, cut)
                if begun is None:
                    return None
                column = max(
                    (
                        candidate
                        for candidate in needed_columns
                        if candidate.physical in keys and candidate.number in begun.leading
                    ),
                    key=lambda candidate: len(keys[candidate.physical]),
                    default=None,
                )
                if column is None:
                    return None
                values = keys[column.physical]
                rows, changes = database.arrow_in(
                    begun.snapshot,
                    _now(source, needed_columns, column, values, most),
                    _since(source, cut, needed_columns),
                )
            finally:
                with suppress(psycopg.Error):
                    connection.rollback()
    except (psycopg.Error, HeadraceError):
        # The probe failed, at a lock for example: the caller has other access paths.
        return None
    if has_misfit(rows) or has_misfit(changes):
        return None
    rows, changes = to_stored(rows, needed_columns), to_stored(changes, needed_columns)
    weights = pa.array(np.ones(rows.num_rows, np.int64))
    back = changes.set_column(0, WEIGHT, pc.negate(changes[WEIGHT]))
    back = back.filter(
        pc.is_in(back[column.physical], pa.array(values, back[column.physical].type))
    )
    return pa.concat_tables(
        [rows.add_column(0, WEIGHT, weights), back.select([WEIGHT, *rows.column_names])]
    )


def _now(
    source: Captured,
    wanted: Sequence[SourceColumn],
    column: SourceColumn,
    values: Sequence[int],
    most: int,
) -> str:
    where = sql.SQL("{} = ANY ({}) LIMIT {}").format(
        sql.Identifier(column.name), sql.Literal(list(values)), sql.Literal(most + 1)
    )
    return read_sql(relation_sql(source.schema, source.name), wanted, where.as_string())


def _since(source: Captured, cut: LastCut, wanted: Sequence[SourceColumn]) -> str:
    where = unseen(cut.snapshot).as_string()
    return read_sql(buffer_sql(source.oid), wanted, where, buffered=True)


@dataclass(frozen=True)
class _ProbeTransaction:
    """A transaction fit for a probe: its snapshot, and the columns that lead an index."""

    snapshot: str
    leading: frozenset[int]


def _begun(connection: Connection[Any], source: Captured, cut: LastCut) -> _ProbeTransaction | None:
    """Begin a transaction for a probe; return None if the probe is impossible.

    The buffer is locked before the snapshot, too, as it is truncated when none of its rows are
    needed.
    """
    connection.execute(JOIN)
    connection.execute("SET LOCAL lock_timeout = '50ms'")
    name, buffer = sql.Identifier(source.schema, source.name), sql.SQL(buffer_sql(source.oid))
    connection.execute(sql.SQL("LOCK TABLE {}, {} IN ACCESS SHARE MODE").format(name, buffer))
    oids = [source.oid]
    with connection.pipeline():
        moment = connection.execute(sql.SQL(MOMENT).format(sql.Literal(cut.snapshot)))
        tables_answer = ask_tables(connection, oids)
        health_answer = ask_health(connection, oids)
        rights_answer = ask_rights(connection, oids)
        leading = connection.execute(INDEXED, (source.oid,))
        many = connection.execute(
            sql.SQL("SELECT count(*) FROM (SELECT FROM {} WHERE {} LIMIT {}) AS p").format(
                buffer, unseen(cut.snapshot), MOST_PENDING + 1
            )
        )
    row, pending = moment.fetchone(), many.fetchone()
    assert row is not None and pending is not None
    system_identifier, timeline, is_later, snapshot = row
    table = read_tables(tables_answer).get(source.oid)
    health = read_health(health_answer).get(source.oid)
    if (
        (system_identifier, timeline) != (cut.system_identifier, cut.timeline)
        or not is_later
        or table is None
        or (table.schema, table.name) != (source.schema, source.name)
        or len(captured_part(source, table).stored)
        < sum(c.type is not None for c in source.columns)
        or reason_to_copy(source, table, health, cut.epoch) is not None
        or read_rights(rights_answer)
        or pending[0] > MOST_PENDING
    ):
        return None
    return _ProbeTransaction(str(snapshot), frozenset(first for (first,) in leading))
