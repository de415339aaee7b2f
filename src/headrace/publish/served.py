"""Served tables: the real PostgreSQL tables that applications read.

Each has the index that publish finds rows by (the unique index of the key where the result has
one, else an index on a hash of the whole row) and a trigger that refuses users' DML. One that is
partitioned begins without partitions; `partitions` makes them as values come.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import Transient, UserError
from headrace.source.rights import FIRST_USER_OID
from headrace.types import Type

Connection = psycopg.Connection[tuple[Any, ...]]
COMMENT = "Stream table kept by Headrace; written only by publish."
MOST_KEY_COLUMNS = 8
MOST_KEY_CHARACTERS = 100

_NO_ENUM = """
SELECT format_type(t.oid, NULL)
FROM pg_type t
LEFT JOIN pg_type e ON e.oid = t.typelem AND e.typarray = t.oid
WHERE t.oid >= %(first)s AND coalesce(e.typtype, t.typtype) <> 'e' AND (t.oid = ANY (
    SELECT a.atttypid FROM pg_attribute a
    WHERE a.attrelid = to_regclass(%(table)s) AND a.attnum > 0 AND NOT a.attisdropped
) OR t.oid = to_regtype(%(type)s))
LIMIT 1
"""


def served_name(table: StreamTable) -> sql.Identifier:
    return sql.Identifier(table.schema, table.name)


def create_served(connection: Connection, table: StreamTable) -> None:
    """Make the table, the index that publish finds rows by, and the guard against user DML."""
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(column.served))
        for column in table.columns
    )
    name = served_name(table)
    by = partition_column(table)
    statement = sql.SQL("CREATE TABLE {} ({})").format(name, columns)
    if by is not None:
        statement += sql.SQL(" PARTITION BY LIST ({})").format(sql.Identifier(by.name))
    connection.execute(statement)
    require_enums(connection, name)
    connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(name, sql.Literal(COMMENT)))
    create_index(connection, table)
    guard(connection, name)


def require_enums(connection: Connection, name: sql.Identifier, type_: str | None = None) -> None:
    """Refuse types of users, of the columns of a table and a given one, that are no enums.

    The owner of an enum may give its name to a domain, whose constraints would run when we write.
    """
    parameters = {"table": name.as_string(connection), "type": type_, "first": FIRST_USER_OID}
    other = connection.execute(_NO_ENUM, parameters).fetchone()
    if other is not None:
        raise Transient(
            "cut-interrupted",
            f"type {other[0]} is not the enum that had this name",
            detail="The stream table was planned with the type that had the name before.",
        )


def partition_column(table: StreamTable) -> OutputColumn | None:
    """The column that the table is partitioned by, if it is."""
    name = table.options.get("partition_by")
    return next((column for column in table.columns if column.name == name), None)


def guard(connection: Connection, name: sql.Identifier) -> None:
    """Refuse users' DML on a table; a trigger of a partitioned one does not fire in a partition."""
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
    one key to an index. That of a partitioned table must have the column that it is partitioned by.
    """
    by = partition_column(table)
    if by is not None and by.name not in table.key:
        return ()
    types = {column.name: column.type for column in table.columns}
    short = all(_is_short(types[name]) for name in table.key)
    return table.key if short and len(table.key) <= MOST_KEY_COLUMNS else ()


def _is_short(type_: Type) -> bool:
    if type_.is_text:
        return type_.length is not None and type_.length <= MOST_KEY_CHARACTERS
    return not type_.is_float and type_.kind not in ("bytea", "jsonb", "array")


def index_name(table: StreamTable) -> str:
    """The name of the index that publish finds rows by."""
    return f"headrace_rows_{table.relation}"


def create_index(connection: Connection, table: StreamTable) -> None:
    """Make the index that publish finds rows by."""
    name = sql.Identifier(index_name(table))
    if index_key(table):
        # Enums are compared by a function, which an index serves only behind other columns.
        types = {column.name: column.type for column in table.columns}
        key = sorted(table.key, key=lambda one: types[one].is_of_users)
        statement = sql.SQL("CREATE UNIQUE INDEX {} ON {} ({}) NULLS NOT DISTINCT").format(
            name, served_name(table), column_names(tuple(key))
        )
    else:
        statement = sql.SQL("CREATE INDEX {} ON {} ({})").format(
            name, served_name(table), row_hash(table, sql.SQL(""))
        )
    connection.execute(statement)


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


def column_names(names: tuple[str, ...]) -> sql.Composed:
    """The columns of these names, as a list."""
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)


def row(table: StreamTable, prefix: sql.SQL) -> sql.Composed:
    """A served row as one value; `prefix` is its table's alias and a point, or nothing."""
    columns = (prefix + sql.Identifier(column.name) for column in table.columns)
    return sql.SQL("ROW({})").format(sql.SQL(", ").join(columns))


def row_hash(table: StreamTable, prefix: sql.SQL) -> sql.Composed:
    """The hash that bags are indexed by."""
    return sql.SQL("hash_record_extended({}, 0)").format(row(table, prefix))
