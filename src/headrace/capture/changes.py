"""Buffers: probing for changes, reading them, and deleting them once they are durable.

A change belongs to a cut when its transaction is visible in the cut's snapshot and not in that
of the cut before. Neither a WAL position nor a sequence decides: both run ahead of commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from psycopg import Connection, errors, sql

from headrace.capture.fold import folded_sql, pays
from headrace.capture.health import ask_health, read_health
from headrace.capture.layout import buffer_name, buffer_sql
from headrace.capture.recopy_reasons import Captured, reason_to_copy
from headrace.capture.space import shrink
from headrace.errors import InternalError
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.introspect import CAPTURE_SCHEMA, ask_tables, read_tables
from headrace.source.reading import (
    MISFIT,
    find_misfit,
    has_misfit,
    read_sql,
    to_stored,
)
from headrace.source.table import SourceTable

NEW = sql.SQL("""
SELECT {oid}::bigint WHERE EXISTS (
    SELECT FROM {buffer} b
    WHERE b._xid >= pg_snapshot_xmin({after}::pg_snapshot)
        AND NOT pg_visible_in_snapshot(b._xid, {after}::pg_snapshot)
)""")

EXISTING = sql.SQL("""
SELECT o.oid FROM unnest(%(oids)s::oid[]) AS o (oid)
WHERE to_regclass({name} || '.buffer_' || o.oid) IS NOT NULL
""").format(name=sql.Literal(CAPTURE_SCHEMA))

FORGET = sql.SQL("""
DELETE FROM {buffer}
WHERE _xid < pg_snapshot_xmax({upto}::pg_snapshot)
    AND pg_visible_in_snapshot(_xid, {upto}::pg_snapshot)""")

# A copy that another process made due after the snapshot stays due.
REMEMBER = sql.SQL("""
UPDATE {schema}.sources
SET acknowledged_epoch = %(epoch)s, acknowledged_at = now(),
    copy_due = CASE WHEN pg_visible_in_snapshot(copy_due_xid, %(upto)s) IS FALSE
        THEN copy_due END,
    copy_due_xid = CASE WHEN pg_visible_in_snapshot(copy_due_xid, %(upto)s) IS FALSE
        THEN copy_due_xid END
WHERE source = ANY (%(oids)s::oid[])
""").format(schema=sql.Identifier(CAPTURE_SCHEMA))


def pending(
    connection: Connection[Any],
    sources: Sequence[Captured],
    snapshot: str,
    epoch: int | None = None,
) -> frozenset[int]:
    """Return the sources with changes, or a reason to recopy, since a cut, in one round trip.

    `snapshot` and `epoch` are those of the last cut.
    """
    oids = [source.oid for source in sources]
    if not oids:
        return frozenset()
    new = sql.SQL(" UNION ALL ").join(
        NEW.format(oid=sql.Literal(oid), buffer=buffer_name(oid), after=sql.Literal(snapshot))
        for oid in oids
    )
    try:
        with connection.pipeline(), connection.transaction():
            connection.execute("SET LOCAL enable_seqscan = off")
            tables_answer = ask_tables(connection, oids)
            health_answer = ask_health(connection, oids)
            new_answer = connection.execute(new)
    except (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn):
        # Part of capture was removed; the next cut finds out which part.
        return frozenset(oids)
    except errors.Error:
        with translated():
            raise
    tables, health = read_tables(tables_answer), read_health(health_answer)
    changed = {oid for (oid,) in new_answer}
    copied_again = {
        source.oid
        for source in sources
        if reason_to_copy(source, tables.get(source.oid), health.get(source.oid), epoch) is not None
    }
    return frozenset(changed | copied_again)


def change_batches(
    database: Database, source: Captured, after: str | None, upto: str, fold_from: int
) -> Iterator[pa.Table]:
    """Yield the changes of a source after one cut and up to another, some megabytes at a time.

    The tables have `_weight` and the captured columns. `after` is None only for a source without an
    earlier cut. Several rows may be equal, and may cancel out, in one table and between two. The
    server folds more than `fold_from` rows, where that removes many. Raises `value-does-not-fit`,
    naming row and column.
    """
    table = SourceTable(source.oid, source.schema, source.name, source.columns, source.keys)
    where = _between(after, upto).as_string()
    relation = buffer_sql(source.oid)
    folded = pays(database, source.oid, table.stored, where, fold_from)
    if folded:
        query = folded_sql(relation, table.stored, where)
    else:
        query = read_sql(relation, table.stored, where, buffered=True)
    for batch in database.arrow_batches(query, by_index=not folded):
        data = pa.Table.from_batches([batch])
        if has_misfit(data):
            with database.session() as connection:
                misfit = find_misfit(connection, relation, table, where, buffered=True)
            raise misfit or InternalError(
                "invariant", f"no value of {table.name} in {MISFIT} was found"
            )
        yield to_stored(data, table.stored)


def acknowledge(database: Database, sources: Iterable[int], snapshot: str, epoch: int) -> None:
    """Delete the buffered changes that a cut contains, and record its epoch in the source database.

    To be called once the cut is durable. One transaction deletes the changes that are visible in
    the snapshot, and clears the copies that were due in it. Repeating the call does no harm.
    """
    oids = sorted(sources)
    with database.session() as connection, translated(), connection.transaction():
        existing = [oid for (oid,) in connection.execute(EXISTING, {"oids": oids})]
        with connection.pipeline():
            connection.execute("SET LOCAL enable_seqscan = off")
            for oid in existing:
                upto = sql.Literal(snapshot)
                connection.execute(FORGET.format(buffer=buffer_name(oid), upto=upto))
            if existing:
                parameters = {"epoch": epoch, "upto": snapshot, "oids": oids}
                connection.execute(REMEMBER, parameters)
    if existing:
        with database.session() as connection:
            shrink(connection, existing)


def _between(after: str | None, upto: str) -> sql.Composed:
    conditions: list[sql.Composable] = [
        sql.SQL("_xid < pg_snapshot_xmax({0}::pg_snapshot)").format(sql.Literal(upto)),
        sql.SQL("pg_visible_in_snapshot(_xid, {}::pg_snapshot)").format(sql.Literal(upto)),
    ]
    if after is not None:
        conditions.append(unseen(after))
    return sql.SQL(" AND ").join(conditions)


def unseen(after: str) -> sql.Composed:
    """Return the condition on rows of a buffer that a cut does not see."""
    return sql.SQL(
        "_xid >= pg_snapshot_xmin({0}::pg_snapshot)"
        " AND NOT pg_visible_in_snapshot(_xid, {0}::pg_snapshot)"
    ).format(sql.Literal(after))
