"""Served tables: the real PostgreSQL tables that applications read.

A change is applied in place, never by swapping or truncating, so that readers keep their snapshot
and users keep their grants, indexes, comments and views. Rows are found through an index: the
unique index of the key where the result has one, else an index on a hash of the whole row.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from pyarrow import csv

from headrace.catalog.records import StreamTable
from headrace.errors import InternalError, UserError
from headrace.store import WEIGHT
from headrace.types import Type

Connection = psycopg.Connection[tuple[Any, ...]]
# Beyond so many changed rows PostgreSQL's planner chooses the way itself.
SMALL_CHANGE = 10_000
MOST_KEY_COLUMNS = 8
MOST_KEY_CHARACTERS = 100


def served_name(table: StreamTable) -> sql.Identifier:
    return sql.Identifier(table.schema, table.name)


def create_served(connection: Connection, table: StreamTable) -> None:
    """Make the table, the index that publish finds rows by, and the guard against user DML."""
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(column.served))
        for column in table.columns
    )
    name = served_name(table)
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(name, columns))
    connection.execute(
        sql.SQL("COMMENT ON TABLE {} IS {}").format(
            name, sql.Literal("Stream table kept by Headrace; written only by publish.")
        )
    )
    connection.execute(_index(table))
    connection.execute(
        sql.SQL(
            "CREATE TRIGGER headrace_refuse_dml BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE"
            " ON {} FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_dml()"
        ).format(name)
    )
    connection.execute(
        sql.SQL("ALTER TABLE {} ENABLE ALWAYS TRIGGER headrace_refuse_dml").format(name)
    )


def index_key(table: StreamTable) -> tuple[str, ...]:
    """The key, if a unique index can hold every value of it and tells all values apart.

    An index entry has a few kilobytes at most, so text must have a short length; 0.0 and -0.0 are
    one key to an index.
    """
    types = {column.name: column.type for column in table.columns}
    short = all(_is_short(types[name]) for name in table.key)
    return table.key if short and len(table.key) <= MOST_KEY_COLUMNS else ()


def _is_short(type_: Type) -> bool:
    if type_.is_text:
        return type_.length is not None and type_.length <= MOST_KEY_CHARACTERS
    return not type_.is_float and type_.kind not in ("bytea", "jsonb")


def _index(table: StreamTable) -> sql.Composed:
    if index_key(table):
        return sql.SQL("CREATE UNIQUE INDEX ON {} ({}) NULLS NOT DISTINCT").format(
            served_name(table), _names(table.key)
        )
    return sql.SQL("CREATE INDEX ON {} ({})").format(
        served_name(table), _row_hash(table, sql.SQL(""))
    )


def drop_served(connection: Connection, table: StreamTable) -> None:
    """Remove the served table; UserError naming the users' objects that depend on it."""
    try:
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(served_name(table)))
    except psycopg.errors.DependentObjectsStillExist as error:
        raise UserError(
            "has-dependents",
            f"other objects depend on stream table {table.schema}.{table.name}",
            detail=error.diag.message_detail,
            hint="Drop them first.",
        ) from error


def apply_change(connection: Connection, table: StreamTable, change: pa.Table) -> None:
    """Bring the served table to the new epoch.

    `change` has `_weight` and then the visible columns in order, netted. Finding fewer rows to
    delete than there must be means that somebody else wrote the table: nothing is published.
    """
    if change.num_rows == 0:
        return
    connection.execute("SET LOCAL headrace.publishing = 'on'")
    if change.num_rows <= SMALL_CHANGE:
        connection.execute(
            "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off;"
            " SET LOCAL enable_mergejoin = off"
        )
    staged = _stage(connection, table, change)
    inserted, expected = count_rows(change)
    if index_key(table):
        found = _apply_by_key(connection, table, change, staged)
    else:
        found = _delete_from_bag(connection, table, staged) if expected else 0
        if inserted:
            _insert(connection, table, staged)
    if found != expected:
        raise _tampered(table, expected, found)
    connection.execute(sql.SQL("DROP TABLE {}").format(staged))


def count_rows(change: pa.Table) -> tuple[int, int]:
    """The rows that a netted change inserts and deletes."""
    weights = change[WEIGHT]
    inserted = pc.sum(pc.if_else(pc.greater(weights, 0), weights, 0)).as_py() or 0
    deleted = pc.sum(pc.if_else(pc.less(weights, 0), pc.negate(weights), 0)).as_py() or 0
    return inserted, deleted


def _tampered(table: StreamTable, expected: int, found: int) -> InternalError:
    return InternalError(
        "invariant",
        f"served table {table.schema}.{table.name} is not as it was published",
        detail=f"{expected} rows were to be deleted, {found} were found.",
        hint="Somebody changed the table behind Headrace. Drop and create the stream table again.",
    )


def _stage(connection: Connection, table: StreamTable, change: pa.Table) -> sql.Identifier:
    """The change as a temporary table: `_weight`, then the served columns."""
    staged = sql.Identifier("pg_temp", f"headrace_change_{table.relation}")
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(f"c{i}"), sql.SQL(column.served))
        for i, column in enumerate(table.columns, 1)
    )
    connection.execute(
        sql.SQL("CREATE TEMPORARY TABLE {} ({} bigint, {}) ON COMMIT DROP").format(
            sql.Identifier(f"headrace_change_{table.relation}"), sql.Identifier(WEIGHT), columns
        )
    )
    with connection.cursor().copy(
        sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(staged)
    ) as copy:
        sink = pa.BufferOutputStream()
        csv.write_csv(_as_text(change), sink, csv.WriteOptions(include_header=False))
        copy.write(memoryview(sink.getvalue()))
    return staged


def _as_text(change: pa.Table) -> pa.Table:
    """The change with those columns spelled out that Arrow does not write as PostgreSQL reads."""
    for i, field in enumerate(change.schema):
        if pa.types.is_binary(field.type):
            spelled = [
                None if value is None else "\\x" + value.hex()
                for value in change.column(i).to_pylist()
            ]
            change = change.set_column(i, field.name, pa.array(spelled, pa.string()))
    return change


def _apply_by_key(
    connection: Connection, table: StreamTable, change: pa.Table, staged: sql.Identifier
) -> int:
    """Keys that only lose their row are deleted, all others inserted or updated in place.

    Gives the number of old rows that were found.
    """
    positions = [_position(table, name) for name in table.key]
    found = 0
    for mask in _null_patterns(change, positions):
        found += connection.execute(_delete_by_key(table, staged, positions, mask)).rowcount
    row = connection.execute(_upsert(table, staged)).fetchone()
    return found + (row[0] if row else 0)


def _null_patterns(change: pa.Table, positions: list[int]) -> set[tuple[bool, ...]]:
    """Which key columns are NULL together in the rows that go."""
    going = change.filter(pc.less(change[WEIGHT], 0))
    columns = [going.column(position).is_null().to_pylist() for position in positions]
    return set(zip(*columns, strict=True))


def _upsert(table: StreamTable, staged: sql.Identifier) -> sql.Composed:
    """Insert or update; the result is how many rows were there before."""
    others = [column.name for column in table.columns if column.name not in table.key]
    names = others or list(table.key)
    updates = sql.SQL(", ").join(
        sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in names
    )
    return sql.SQL(
        "WITH written AS (INSERT INTO {table} ({columns}) SELECT {values} FROM {staged} d"
        " WHERE d.{weight} > 0 ON CONFLICT ({key}) DO UPDATE SET {updates}"
        " RETURNING xmax <> 0 AS was_there)"
        " SELECT count(*) FILTER (WHERE was_there) FROM written"
    ).format(
        table=served_name(table),
        columns=_names(tuple(column.name for column in table.columns)),
        values=_staged_columns(table, "d"),
        staged=staged,
        weight=sql.Identifier(WEIGHT),
        key=_names(table.key),
        updates=updates,
    )


def _delete_by_key(
    table: StreamTable, staged: sql.Identifier, positions: list[int], mask: tuple[bool, ...]
) -> sql.Composed:
    """Delete the keys that are NULL just where `mask` says, so that the index serves each test."""
    old, same = [], []
    for name, position, missing in zip(table.key, positions, mask, strict=True):
        staged_column = sql.Identifier("d", f"c{position}")
        if missing:
            old.append(sql.SQL("{} IS NULL").format(staged_column))
            same.append(sql.SQL("s.{} IS NULL").format(sql.Identifier(name)))
        else:
            old.append(sql.SQL("{} IS NOT NULL").format(staged_column))
            same.append(sql.SQL("s.{} = {}").format(sql.Identifier(name), staged_column))
    unchanged = [
        sql.SQL("{} IS NOT DISTINCT FROM {}").format(
            sql.Identifier("n", f"c{position}"), sql.Identifier("d", f"c{position}")
        )
        for position in positions
    ]
    return sql.SQL(
        "DELETE FROM {table} s USING {staged} d WHERE d.{weight} < 0 AND {old} AND {same}"
        " AND NOT EXISTS (SELECT FROM {staged} n WHERE n.{weight} > 0 AND {unchanged})"
    ).format(
        table=served_name(table),
        staged=staged,
        weight=sql.Identifier(WEIGHT),
        old=sql.SQL(" AND ").join(old),
        same=sql.SQL(" AND ").join(same),
        unchanged=sql.SQL(" AND ").join(unchanged),
    )


def _delete_from_bag(connection: Connection, table: StreamTable, staged: sql.Identifier) -> int:
    """Delete as many copies of each row as its weight says; which ones does not matter."""
    served_row = _row(table, sql.SQL("s."))
    staged_row = sql.SQL("ROW({})").format(_staged_columns(table, "d"))
    statement = sql.SQL(
        "WITH found AS (SELECT s.ctid AS place, d.{weight} AS weight, row_number() OVER"
        " (PARTITION BY d.ctid) AS number FROM {staged} d JOIN {table} s"
        " ON {served_hash} = hash_record_extended({staged_row}, 0)"
        " AND record_image_eq({served_row}, {staged_row}) WHERE d.{weight} < 0)"
        " DELETE FROM {table} WHERE ctid IN (SELECT place FROM found WHERE number <= -weight)"
    ).format(
        weight=sql.Identifier(WEIGHT),
        staged=staged,
        table=served_name(table),
        served_hash=_row_hash(table, sql.SQL("s.")),
        served_row=served_row,
        staged_row=staged_row,
    )
    return connection.execute(statement).rowcount


def _insert(connection: Connection, table: StreamTable, staged: sql.Identifier) -> None:
    """Insert every new row as often as its weight says."""
    connection.execute(
        sql.SQL(
            "INSERT INTO {} ({}) SELECT {} FROM {} d, generate_series(1, d.{}) WHERE d.{} > 0"
        ).format(
            served_name(table),
            _names(tuple(column.name for column in table.columns)),
            _staged_columns(table, "d"),
            staged,
            sql.Identifier(WEIGHT),
            sql.Identifier(WEIGHT),
        )
    )


def _names(names: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)


def _staged_columns(table: StreamTable, alias: str) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.Identifier(alias, f"c{i}") for i in range(1, len(table.columns) + 1)
    )


def _row(table: StreamTable, prefix: sql.SQL) -> sql.Composed:
    columns = (prefix + sql.Identifier(column.name) for column in table.columns)
    return sql.SQL("ROW({})").format(sql.SQL(", ").join(columns))


def _row_hash(table: StreamTable, prefix: sql.SQL) -> sql.Composed:
    return sql.SQL("hash_record_extended({}, 0)").format(_row(table, prefix))


def _position(table: StreamTable, name: str) -> int:
    return next(i for i, column in enumerate(table.columns, 1) if column.name == name)
