"""Served tables: the real PostgreSQL tables that applications read.

Each has the index that publish finds rows by (the unique index of the key where the result has
one or its owner declares it, else an index on a hash of the whole row) and a trigger that refuses
users' DML. One that is partitioned begins without partitions; `partitions` makes them as values
come.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import psycopg
from psycopg import sql

from headrace.catalog import new_relation_id
from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import Transient, UserError
from headrace.publish.partitioning import partition_of
from headrace.publish.served_key import key_violated, served_key
from headrace.source.rights import FIRST_USER_OID

Connection = psycopg.Connection[tuple[Any, ...]]
COMMENT = "Stream table kept by Headrace; written only by publish."
# The options that make another index.
INDEX_OPTIONS = ("key", "primary_key", "include")
# Two rows have one key, a part of it is NULL, or it is too long for an index.
BROKEN_KEY = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.NotNullViolation,
    psycopg.errors.ProgramLimitExceeded,
)

_LEAVES = """
SELECT n.nspname, c.relname, pg_get_expr(c.relpartbound, c.oid)
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE i.inhparent = to_regclass(%s) AND c.relispartition
ORDER BY 1, 2
"""

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
    by = partition_of(table)
    statement = sql.SQL("CREATE TABLE {} ({})").format(name, columns)
    if by is not None:
        scheme, column = by
        kind = sql.SQL("RANGE" if scheme.is_range else "LIST")
        statement += sql.SQL(" PARTITION BY {} ({})").format(kind, sql.Identifier(column.name))
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
    found = partition_of(table)
    return None if found is None else found[1]


def leaves(connection: Connection, table: StreamTable) -> list[tuple[sql.Identifier, str]]:
    """The partitions of a served table, each with its bound as PostgreSQL spells it."""
    name = served_name(table).as_string(connection)
    found = connection.execute(_LEAVES, [name]).fetchall()
    return [(sql.Identifier(schema, leaf), bound) for schema, leaf, bound in found]


def attach(connection: Connection, table: StreamTable, bound: sql.Composable) -> sql.Identifier:
    """Make a partition with the indexes of the table, guarded as the table is; its name."""
    name = sql.Identifier(table.schema, f"headrace_part_{new_relation_id()}")
    parent = served_name(table)
    alike = sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING CONSTRAINTS)")
    connection.execute(alike.format(name, parent))
    guard(connection, name)
    attaching = sql.SQL("ALTER TABLE {} ATTACH PARTITION {} {}")
    connection.execute(attaching.format(parent, name, bound))
    return name


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
    """The columns of the unique index that publish finds rows by; none where it goes by a hash."""
    key = served_key(table)
    return () if key is None else key.columns


def index_name(table: StreamTable) -> str:
    """The name of the index that publish finds rows by.

    Another key has another one, so that both can be there while one takes the other's place.
    """
    given = [f"{name}={table.options[name]}" for name in INDEX_OPTIONS if name in table.options]
    digest = "_" + sha256("\0".join(given).encode()).hexdigest()[:8] if given else ""
    return f"headrace_rows_{table.relation}{digest}"


def create_index(connection: Connection, table: StreamTable) -> None:
    """Make the index that publish finds rows by; `key-violated` where rows do not keep it."""
    with keeping_key(table):
        connection.execute(index_sql(table))


def index_sql(table: StreamTable, *, beside: bool = False) -> sql.Composed:
    """The statement that makes the index.

    `beside` others it is made while the table is written, and is an index alone: a primary key is
    made of it later.
    """
    name, on, key = sql.Identifier(index_name(table)), served_name(table), served_key(table)
    how = sql.SQL("CONCURRENTLY " if beside else "")
    if key is None:
        return sql.SQL("CREATE INDEX {}{} ON {} ({})").format(
            how, name, on, row_hash(table, sql.SQL(""))
        )
    # Enums are compared by a function, which an index serves only behind other columns.
    types = {column.name: column.type for column in table.columns}
    columns = column_names(tuple(sorted(key.columns, key=lambda one: types[one].is_of_users)))
    include = sql.SQL(" INCLUDE ({})" if key.include else "").format(column_names(key.include))
    if key.primary and not beside:
        return sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} PRIMARY KEY ({}){}").format(
            on, name, columns, include
        )
    # No primary key can be made of one that tells NULL.
    nulls = sql.SQL("" if key.primary else " NULLS NOT DISTINCT")
    return sql.SQL("CREATE UNIQUE INDEX {}{} ON {} ({}){}{}").format(
        how, name, on, columns, include, nulls
    )


def drop_index(connection: Connection, table: StreamTable) -> None:
    """Remove the index that publish finds rows by."""
    key = served_key(table)
    if key is None or not key.primary:
        name = sql.Identifier(table.schema, index_name(table))
        connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(name))
        return
    on, name = served_name(table), sql.Identifier(index_name(table))
    connection.execute(sql.SQL("ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}").format(on, name))
    for column in key.columns:
        nullable = sql.SQL("ALTER TABLE {} ALTER COLUMN {} DROP NOT NULL")
        connection.execute(nullable.format(on, sql.Identifier(column)))


@contextmanager
def keeping_key(table: StreamTable, index: str | None = None) -> Iterator[None]:
    """Raise `key-violated` if rows inside break a key that only their owner says they have.

    A partition has an `index` of its own for it. That of a user may be broken, too.
    """
    key = served_key(table)
    try:
        yield
    except BROKEN_KEY as error:
        ours = (None, index or index_name(table))
        if key is None or not key.may_break or error.diag.constraint_name not in ours:
            raise
        if error.diag.column_name is not None and error.diag.column_name not in key.columns:
            raise
        detail = error.diag.message_detail or error.diag.message_primary
        raise key_violated(table, detail) from error


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
