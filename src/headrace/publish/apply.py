"""Applying a change to a served table, in place.

Never by swapping or truncating, so that readers keep their snapshot and users keep their grants,
indexes, comments and views. A partitioned table is changed partition by partition, each by its own
rows of the change; those without any are not even locked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from psycopg import errors, sql

from headrace.catalog.records import StreamTable
from headrace.errors import InternalError
from headrace.publish.last_steps import LastSteps
from headrace.publish.load import load_change, staged_columns
from headrace.publish.own_table import require_own_table
from headrace.publish.partition_scheme import DROP_EMPTY
from headrace.publish.partitions import Slice, slices
from headrace.publish.ranges import drop_empty
from headrace.publish.served import (
    Connection,
    column_names,
    index_key,
    index_name,
    index_names,
    keeping_key,
    partition_column,
    row,
    row_hash,
)
from headrace.publish.served_key import key_violated, served_key
from headrace.relations.visible_change import VisibleChange
from headrace.store import WEIGHT

# Beyond so many changed rows PostgreSQL's planner chooses the access path itself.
SMALL_CHANGE = 10_000


def apply_change(
    connection: Connection,
    table: StreamTable,
    change: VisibleChange,
    last: LastSteps | None = None,
) -> None:
    """Bring the served table to the new epoch.

    Fewer rows deleted or inserted than the change has mean that somebody else wrote the table, or
    keeps rows out: nothing is published. What locks readers out is left to the `last` steps of the
    transaction, or done at once without them.
    """
    if change.is_empty:
        return
    require_own_table(connection, table)
    connection.execute("SET LOCAL headrace.publishing = 'on'")
    _choose_plans(connection, change)
    staged = load_change(connection, table, change)
    parts = slices(connection, table, staged)
    written = [_apply(connection, table, change, part) for part in parts.ready]
    names = [part.table for part in parts.ready]

    def apply_pending() -> None:
        _choose_plans(connection, change)
        for part in parts.attach_pending(connection, table):
            written.append(_apply(connection, table, change, part))
            names.append(part.table)
        _require_all(table, change, written)
        connection.execute(sql.SQL("DROP TABLE {}").format(staged))

    steps = LastSteps() if last is None else last
    if parts.pending is None:
        apply_pending()
    else:
        steps.attaching.append(apply_pending)
    if change.deleted and table.options.get(DROP_EMPTY) and partition_column(table) is not None:
        steps.dropping.append(lambda: drop_empty(connection, table, names))
    if last is None:
        steps.perform()


class Written(NamedTuple):
    """How many rows were written: an update in place deletes a row and inserts one."""

    deleted: int
    inserted: int


def _require_all(table: StreamTable, change: VisibleChange, written: Iterable[Written]) -> None:
    counts = list(written)
    deleted, inserted = sum(n.deleted for n in counts), sum(n.inserted for n in counts)
    if deleted != change.deleted:
        raise tampered(table, f"{change.deleted} rows were to be deleted, {deleted} were found.")
    if inserted != change.inserted:
        raise tampered(
            table,
            f"{change.inserted} rows were to be inserted, {inserted} were:"
            " a trigger or rule of the table may keep rows out.",
        )


def _apply(
    connection: Connection, table: StreamTable, change: VisibleChange, part: Slice
) -> Written:
    """Bring one table, all that is served or a partition, to its new rows.

    A violation of its key is distinguished from that of a user's index by the name of the index.
    Rows that are only added are looked up first if the table is partitioned.
    """
    key = served_key(table)
    if not change.deleted and partition_column(table) is None:
        return Written(0, _add(connection, table, part))
    if key is not None and key.declared:
        return _apply_by_declared_key(connection, table, part)
    if key is not None:
        return _apply_by_key(connection, table, part)
    deleted = _delete_from_bag(connection, table, part) if change.deleted else 0
    return Written(deleted, _insert(connection, table, part) if change.inserted else 0)


def _choose_plans(connection: Connection, change: VisibleChange) -> None:
    """Make a small change go through the index; other tables may follow in the transaction."""
    value = "off" if change.inserted + change.deleted <= SMALL_CHANGE else "DEFAULT"
    settings = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
    connection.execute(sql.SQL("; ".join(f"SET LOCAL {name} TO {value}" for name in settings)))


def tampered(table: StreamTable, detail: str) -> InternalError:
    """Return the error of a served table that has other rows than those published."""
    return InternalError(
        "invariant",
        f"served table {table.schema}.{table.name} is not as it was published",
        detail=detail,
        hint="Somebody changed the table behind Headrace: reinit the stream table.",
    )


def _add(connection: Connection, table: StreamTable, part: Slice) -> int:
    """Insert the rows of a change that only adds some, without a lookup; return how many."""
    try:
        with keeping_key(table, (index_name(table),)):
            return _insert(connection, table, part)
    except errors.UniqueViolation as error:
        if error.diag.constraint_name != index_name(table):
            raise
        raise tampered(table, "A row was to be inserted whose key was there.") from error


def _apply_by_key(connection: Connection, table: StreamTable, part: Slice) -> Written:
    """Delete keys that only lose their row, and insert or update all others in place."""
    names = index_names(connection, table, (part.table,))
    deleted = _delete_lost(connection, table, part)
    with keeping_key(table, names):
        updated, inserted = _upsert(connection, table, part)
    return Written(deleted + updated, inserted)


def _apply_by_declared_key(connection: Connection, table: StreamTable, part: Slice) -> Written:
    """Apply a change by a key that rows may break: update only rows whose key has lost a row.

    All others are inserted, so that PostgreSQL names the first that finds its key taken. A key that
    gains two rows is checked first: it may lose one, too.
    """
    positions = [_position(table, name) for name in index_key(table)]
    key = column_names(tuple(f"c{position}" for position in positions))
    marked = sql.SQL(
        "(SELECT *, bool_or({weight} < 0) OVER same AS replaces,"
        " sum(greatest({weight}, 0)) OVER same AS copies FROM {staged} d WHERE {condition}"
        " WINDOW same AS (PARTITION BY {key}))"
    ).format(weight=sql.Identifier(WEIGHT), staged=part.staged, condition=part.condition, key=key)
    twice = connection.execute(
        sql.SQL("SELECT ROW({})::text FROM {} d WHERE copies > 1 LIMIT 1").format(key, marked)
    ).fetchone()
    if twice is not None:
        raise key_violated(table, f"Two rows would have the key {twice[0]}.")
    names = index_names(connection, table, (part.table,))
    deleted = _delete_lost(connection, table, part)
    with keeping_key(table, names):
        replacing = Slice(part.table, marked, sql.SQL("d.replaces"))
        updated, inserted = _upsert(connection, table, replacing)
        inserted += _insert(connection, table, Slice(part.table, marked, sql.SQL("NOT d.replaces")))
    return Written(deleted + updated, inserted)


def _delete_lost(connection: Connection, table: StreamTable, part: Slice) -> int:
    """Delete the rows of keys that only lose them; return how many there were."""
    positions = [_position(table, name) for name in index_key(table)]
    return sum(
        connection.execute(_delete_by_key(table, part, positions, mask)).rowcount
        for mask in _null_patterns(connection, part, positions)
    )


def _null_patterns(
    connection: Connection, part: Slice, positions: list[int]
) -> list[tuple[bool, ...]]:
    """Return which key columns are NULL together in the rows that go."""
    missing = sql.SQL(", ").join(
        sql.SQL("d.{} IS NULL").format(sql.Identifier(f"c{position}")) for position in positions
    )
    return connection.execute(
        sql.SQL("SELECT DISTINCT {} FROM {} d WHERE {} AND d.{} < 0").format(
            missing, part.staged, part.condition, sql.Identifier(WEIGHT)
        )
    ).fetchall()


def _upsert(connection: Connection, table: StreamTable, part: Slice) -> tuple[int, int]:
    """Insert or update rows; return how many were updated, and how many were written in all."""
    own = index_key(table)
    others = [column.name for column in table.columns if column.name not in own]
    names = others or list(own)
    updates = sql.SQL(", ").join(
        sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in names
    )
    statement = sql.SQL(
        "WITH written AS (INSERT INTO {table} ({columns}) SELECT {values} FROM {staged} d"
        " WHERE {condition} AND d.{weight} > 0 ON CONFLICT ({key}) DO UPDATE SET {updates}"
        " RETURNING xmax <> 0 AS was_there)"
        " SELECT count(*) FILTER (WHERE was_there), count(*) FROM written"
    ).format(
        table=part.table,
        columns=column_names(tuple(column.name for column in table.columns)),
        values=staged_columns(table, "d"),
        staged=part.staged,
        condition=part.condition,
        weight=sql.Identifier(WEIGHT),
        key=column_names(own),
        updates=updates,
    )
    row = connection.execute(statement).fetchone()
    assert row is not None
    return row[0], row[1]


def _delete_by_key(
    table: StreamTable,
    part: Slice,
    positions: list[int],
    mask: tuple[bool, ...],
) -> sql.Composed:
    """Delete the keys that are NULL just where `mask` says, so that the index serves each test."""
    old, same = [], []
    for name, position, missing in zip(index_key(table), positions, mask, strict=True):
        staged_column = sql.Identifier("d", f"c{position}")
        if missing:
            old.append(sql.SQL("{} IS NULL").format(staged_column))
            same.append(sql.SQL("s.{} IS NULL").format(sql.Identifier(name)))
        else:
            old.append(sql.SQL("{} IS NOT NULL").format(staged_column))
            test = (
                "enum_eq(s.{}, {})" if table.columns[position - 1].type.is_of_users else "s.{} = {}"
            )
            same.append(sql.SQL(test).format(sql.Identifier(name), staged_column))
    return sql.SQL(
        "DELETE FROM {table} s USING (SELECT {key} FROM {staged} d WHERE {condition} GROUP BY {key}"
        " HAVING max({weight}) < 0) d WHERE {old} AND {same}"
    ).format(
        table=part.table,
        staged=part.staged,
        condition=part.condition,
        weight=sql.Identifier(WEIGHT),
        key=column_names(tuple(f"c{position}" for position in positions)),
        old=sql.SQL(" AND ").join(old),
        same=sql.SQL(" AND ").join(same),
    )


def _delete_from_bag(connection: Connection, table: StreamTable, part: Slice) -> int:
    """Delete as many copies of each row as its weight says, whichever; return how many."""
    served_row = row(table, sql.SQL("s."))
    staged_row = sql.SQL("ROW({})").format(staged_columns(table, "d"))
    statement = sql.SQL(
        "WITH copies AS (SELECT s.ctid AS location, d.{weight} AS weight, row_number() OVER"
        " (PARTITION BY d.ctid) AS number FROM {staged} d JOIN {table} s"
        " ON {served_hash} = hash_record_extended({staged_row}, 0)"
        " AND record_image_eq({served_row}, {staged_row})"
        " WHERE {condition} AND d.{weight} < 0)"
        " DELETE FROM {table} WHERE ctid IN (SELECT location FROM copies WHERE number <= -weight)"
    ).format(
        weight=sql.Identifier(WEIGHT),
        staged=part.staged,
        condition=part.condition,
        table=part.table,
        served_hash=row_hash(table, sql.SQL("s.")),
        served_row=served_row,
        staged_row=staged_row,
    )
    return connection.execute(statement).rowcount


def _insert(connection: Connection, table: StreamTable, part: Slice) -> int:
    """Insert every new row as often as its weight says; return how many."""
    return connection.execute(
        sql.SQL(
            "INSERT INTO {table} ({columns}) SELECT {values} FROM {staged} d,"
            " generate_series(1, d.{weight}) WHERE {condition} AND d.{weight} > 0"
        ).format(
            table=part.table,
            columns=column_names(tuple(column.name for column in table.columns)),
            values=staged_columns(table, "d"),
            staged=part.staged,
            weight=sql.Identifier(WEIGHT),
            condition=part.condition,
        )
    ).rowcount


def _position(table: StreamTable, name: str) -> int:
    return next(i for i, column in enumerate(table.columns, 1) if column.name == name)
