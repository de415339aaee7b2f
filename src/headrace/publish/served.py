"""Served tables: the real PostgreSQL tables that applications read.

Each has the index that publish finds rows by (the unique index of the key where the result has
one or its owner declares it, else an index on a hash of the whole row) and a trigger that refuses
users' DML. One that is partitioned begins without partitions; `partitions` makes them as values
come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import psycopg
from psycopg import sql

from headrace.catalog import new_relation_id
from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import Transient, UserError
from headrace.publish.partitioning import partition_of
from headrace.publish.served_key import index_row_too_large, key_violated, served_key
from headrace.source.rights import FIRST_USER_OID

Connection = psycopg.Connection[tuple[Any, ...]]
COMMENT = "Stream table kept by Headrace; written only by publish."
# The options that make another index.
INDEX_OPTIONS = ("key", "primary_key", "include")

_INDEX_OF_PARTITION = """
SELECT c.relname
FROM pg_inherits i
JOIN pg_index x ON x.indexrelid = i.inhrelid
JOIN pg_class c ON c.oid = x.indexrelid
WHERE i.inhparent = to_regclass(%(index)s)
    AND x.indrelid = ANY (%(partitions)s::text[]::regclass[])
"""

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
    type_row = connection.execute(_NO_ENUM, parameters).fetchone()
    if type_row is not None:
        raise Transient(
            "cut-interrupted",
            f"type {type_row[0]} is not the enum that had this name",
            detail="The stream table was planned with the type that had the name before.",
        )


def partition_column(table: StreamTable) -> OutputColumn | None:
    """Return the column that the table is partitioned by, if it is."""
    partitioning = partition_of(table)
    return None if partitioning is None else partitioning[1]


def leaves(connection: Connection, table: StreamTable) -> list[tuple[sql.Identifier, str]]:
    """Return the partitions of a served table, each with its bound in PostgreSQL's spelling."""
    name = served_name(table).as_string(connection)
    rows = connection.execute(_LEAVES, [name]).fetchall()
    return [(sql.Identifier(schema, leaf), bound) for schema, leaf, bound in rows]


def partition_name(table: StreamTable) -> sql.Identifier:
    """Return a name for another partition of a served table."""
    return sql.Identifier(table.schema, f"headrace_part_{new_relation_id()}")


def create_partition(connection: Connection, table: StreamTable, name: sql.Identifier) -> None:
    """Create a table that can be attached as a partition, guarded as the served table is."""
    creating = sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING CONSTRAINTS)")
    connection.execute(creating.format(name, served_name(table)))
    guard(connection, name)


def attach_partition(
    connection: Connection, table: StreamTable, name: sql.Identifier, bound: sql.Composable
) -> None:
    """Attach a partition; PostgreSQL makes the indexes of the served table on it.

    Readers wait for it only where the served table has a default partition.
    """
    attaching = sql.SQL("ALTER TABLE {} ATTACH PARTITION {} {}")
    connection.execute(attaching.format(served_name(table), name, bound))


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
    """Return the columns of the unique index that publish finds rows by, none for a hash index."""
    key = served_key(table)
    return () if key is None else key.columns


def index_name(table: StreamTable) -> str:
    """Return the name of the index that publish finds rows by.

    Another key has another name, so that both indexes can exist while they are exchanged.
    """
    options = [f"{name}={table.options[name]}" for name in INDEX_OPTIONS if name in table.options]
    digest = "_" + sha256("\0".join(options).encode()).hexdigest()[:8] if options else ""
    return f"headrace_rows_{table.relation}{digest}"


def index_names(
    connection: Connection, table: StreamTable, partitions: Iterable[sql.Identifier]
) -> tuple[str, ...]:
    """Return the names of the index that publish finds rows by, on the table and on partitions.

    Those of partitions matter only where users' options may be at fault for an error.
    """
    key = served_key(table)
    if partition_column(table) is None or key is None or not key.is_user_requested:
        return (index_name(table),)
    index = sql.Identifier(table.schema, index_name(table)).as_string(connection)
    names = [partition.as_string(connection) for partition in partitions]
    rows = connection.execute(_INDEX_OF_PARTITION, {"index": index, "partitions": names}).fetchall()
    return (index_name(table), *(name for (name,) in rows))


def create_index(connection: Connection, table: StreamTable) -> None:
    """Make the index that publish finds rows by; `key-violated` where rows do not keep it."""
    with keeping_key(table):
        connection.execute(index_sql(table))


def index_sql(
    table: StreamTable, *, beside: bool = False, partition: sql.Identifier | None = None
) -> sql.Composed:
    """Return the statement that makes the index.

    `beside` others it is made while the table is written, and is an index alone: a primary key is
    made of it later. A `partition` has an index of its own.
    """
    name, on, key = index_name(table), served_name(table), served_key(table)
    if partition is not None:
        name, on = partition_index_name(table, partition), partition
    index = sql.Identifier(name)
    concurrently = sql.SQL("CONCURRENTLY " if beside else "")
    if key is None:
        return sql.SQL("CREATE INDEX {}{} ON {} ({})").format(
            concurrently, index, on, row_hash(table, sql.SQL(""))
        )
    # Enums are compared by a function, which an index serves only behind other columns.
    types = {column.name: column.type for column in table.columns}
    columns = column_names(tuple(sorted(key.columns, key=lambda name: types[name].is_of_users)))
    include = sql.SQL(" INCLUDE ({})" if key.include else "").format(column_names(key.include))
    if key.primary and not beside:
        return sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} PRIMARY KEY ({}){}").format(
            on, index, columns, include
        )
    # No primary key can be made of an index in which NULL equals NULL.
    nulls = sql.SQL("" if key.primary else " NULLS NOT DISTINCT")
    return sql.SQL("CREATE UNIQUE INDEX {}{} ON {} ({}){}{}").format(
        concurrently, index, on, columns, include, nulls
    )


def partition_index_name(table: StreamTable, partition: sql.Identifier) -> str:
    """Return the name of an index that is built beside the others of a partition."""
    digest = sha256(partition.as_string().encode()).hexdigest()[:12]
    return f"{index_name(table)}_p{digest}"


def drop_index(connection: Connection, table: StreamTable) -> None:
    """Remove the index that publish finds rows by."""
    key = served_key(table)
    if key is None or not key.primary:
        name = sql.Identifier(table.schema, index_name(table))
        _drop_free(connection, table, sql.SQL("DROP INDEX IF EXISTS {}").format(name))
        return
    on, name = served_name(table), sql.Identifier(index_name(table))
    text = sql.SQL("ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}")
    _drop_free(connection, table, text.format(on, name))
    for column in key.columns:
        nullable = sql.SQL("ALTER TABLE {} ALTER COLUMN {} DROP NOT NULL")
        connection.execute(nullable.format(on, sql.Identifier(column)))


def _drop_free(connection: Connection, table: StreamTable, statement: sql.Composed) -> None:
    """Drop an index or a constraint; UserError naming the users' foreign keys that need it."""
    try:
        connection.execute(statement)
    except psycopg.errors.DependentObjectsStillExist as error:
        raise UserError(
            "has-dependents",
            f"other objects need the key of {table.schema}.{table.name}",
            detail=error.diag.message_detail,
            hint="Drop them first, and make them again afterwards.",
        ) from error


@contextmanager
def keeping_key(table: StreamTable, indexes: Collection[str] | None = None) -> Iterator[None]:
    """Raise `key-violated` if rows inside break a key that only their owner declares.

    A row that is too large for the index is `index-row-too-large`. Of other `indexes` than those
    named, such as a user's, errors are raised as they are; without names there are no others.
    """
    key = served_key(table)
    try:
        yield
    except (psycopg.errors.UniqueViolation, psycopg.errors.NotNullViolation) as error:
        if key is None or not key.may_break or not _is_of(error, indexes):
            raise
        if error.diag.column_name is not None and error.diag.column_name not in key.columns:
            raise
        detail = error.diag.message_detail or error.diag.message_primary
        raise key_violated(table, detail) from error
    except psycopg.errors.ProgramLimitExceeded as error:
        if key is None or not key.is_user_requested or not _is_of(error, indexes):
            raise
        raise index_row_too_large(table, error.diag.message_primary) from error


def _is_of(error: psycopg.Error, indexes: Collection[str] | None) -> bool:
    """Return whether an error is that of one of the indexes, or names none."""
    name = error.diag.constraint_name
    return indexes is None or name is None or name in indexes


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
    """Return the columns of these names, as a list in SQL."""
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)


def row(table: StreamTable, prefix: sql.SQL) -> sql.Composed:
    """Return a served row as one value; `prefix` is its table's alias and a point, or empty."""
    columns = (prefix + sql.Identifier(column.name) for column in table.columns)
    return sql.SQL("ROW({})").format(sql.SQL(", ").join(columns))


def row_hash(table: StreamTable, prefix: sql.SQL) -> sql.Composed:
    """Return the hash that bags are indexed by."""
    return sql.SQL("hash_record_extended({}, 0)").format(row(table, prefix))
