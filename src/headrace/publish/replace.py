"""A served table brought to the rows and the shape of a rebuilt stream table.

In place: grants, indexes, comments and views of users stay, rows that are in both are not touched.
Only a table that is partitioned in another way is made again.
"""

from __future__ import annotations

from dataclasses import replace

import psycopg
from psycopg import sql

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import UserError
from headrace.publish.apply import tampered
from headrace.publish.load import load_change, staged_columns
from headrace.publish.own_table import require_own_table
from headrace.publish.partition_scheme import Scheme
from headrace.publish.partitioning import partition_of
from headrace.publish.partitions import partitions, slices
from headrace.publish.remake import remake
from headrace.publish.served import (
    Connection,
    column_names,
    create_index,
    create_served,
    drop_index,
    index_name,
    index_names,
    keeping_key,
    leaves,
    require_enums,
    row,
    served_name,
)
from headrace.publish.served_key import served_key
from headrace.relations.visible_change import VisibleChange
from headrace.store import WEIGHT


def replace_served(
    connection: Connection, old: StreamTable, new: StreamTable, rows: VisibleChange
) -> None:
    """Make the served table of `old` that of `new`, whose rows are all given, with their weights.

    Rows are compared by their binary images: 1.0 and 1.00 are two values.
    """
    require_own_table(connection, old)
    # A small change before it in the transaction may have turned these off.
    connection.execute(
        "SET LOCAL headrace.publishing = 'on'; SET LOCAL enable_seqscan = on;"
        " SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on"
    )
    reshape(connection, old, new)
    staged = load_change(connection, new, rows)
    # The rows find the partitions that are made here by themselves.
    slices(connection, new, staged).attach_pending(connection, new)
    named_as_before = replace(old, schema=new.schema, name=new.name)
    names = index_names(connection, named_as_before, (name for name, _ in leaves(connection, new)))
    connection.execute(_delete(new, staged))
    with keeping_key(new, names):
        connection.execute(_insert(new, staged))
    _require_all(connection, new, rows)
    connection.execute(sql.SQL("DROP TABLE {}").format(staged))
    _keep_index(connection, old, new)


def _require_all(connection: Connection, table: StreamTable, rows: VisibleChange) -> None:
    """Raise `invariant` if rows are missing, which a trigger of a user may have kept out."""
    counting = sql.SQL("SELECT count(*) FROM {}").format(served_name(table))
    row = connection.execute(counting).fetchone()
    assert row is not None
    if row[0] != rows.inserted:
        detail = f"{rows.inserted} rows were to be there, {row[0]} are:"
        raise tampered(table, detail + " a trigger or rule of the table may keep rows out.")


def replace_empty(connection: Connection, old: StreamTable, new: StreamTable) -> None:
    """Make the served table of `old`, which has no rows, that of `new`, which has none either."""
    require_own_table(connection, old)
    reshape(connection, old, new)
    _keep_index(connection, old, new)


def _keep_index(connection: Connection, old: StreamTable, new: StreamTable) -> None:
    """Give the index of a reshaped table the name it has now, or make it."""
    name, new_name = sql.Identifier(new.schema, index_name(old)), sql.Identifier(index_name(new))
    connection.execute(sql.SQL("ALTER INDEX IF EXISTS {} RENAME TO {}").format(name, new_name))
    if not _exists(connection, sql.Identifier(new.schema, index_name(new))):
        create_index(connection, new)


def reshape(connection: Connection, old: StreamTable, new: StreamTable) -> None:
    """Give the served table its new name and columns; its rows are whatever they are then.

    UserError `has-dependents` where a user's view needs what would go. Columns that are new come
    last, whatever their place in the query. The index goes where it no longer fits; a table that
    somebody dropped is made again, and so is one that is partitioned in another way.
    """
    if not _exists(connection, served_name(old)):
        create_served(connection, new)
        return
    try:
        if _shape(old) != _shape(new):
            drop_index(connection, old)
        rename(connection, old, new)
        if _partitioning(old) == _partitioning(new):
            _alter_columns(connection, old, new)
        else:
            remake(connection, new)
    except (
        psycopg.errors.DependentObjectsStillExist,
        psycopg.errors.FeatureNotSupported,
    ) as error:
        raise UserError(
            "has-dependents",
            f"other objects need {old.schema}.{old.name} as it is",
            detail=error.diag.message_detail or error.diag.message_primary,
            hint="Drop them first, and make them again afterwards.",
        ) from error


def _alter_columns(connection: Connection, old: StreamTable, new: StreamTable) -> None:
    before = {column.name: column for column in old.columns}
    after = {column.name: column for column in new.columns}
    for name in sorted(before.keys() - after.keys()):
        _alter(connection, new, "DROP COLUMN {}", sql.Identifier(name))
    for name, column in after.items():
        if column.type.is_of_users:
            require_enums(connection, served_name(new), column.served)
        if name not in before:
            type_ = sql.SQL(column.served)
            _alter(connection, new, "ADD COLUMN {} {}", sql.Identifier(name), type_)
        elif before[name].served != column.served:
            _retype(connection, new, before[name], column)
    require_enums(connection, served_name(new))


def rename(connection: Connection, old: StreamTable, new: StreamTable) -> None:
    """Give the served table another name or schema, if it has one."""
    if old.schema != new.schema:
        for name in (
            *(partition.name for partition in partitions(connection, old)),
            served_name(old),
        ):
            connection.execute(
                sql.SQL("ALTER TABLE {} SET SCHEMA {}").format(name, sql.Identifier(new.schema))
            )
    if old.name != new.name:
        connection.execute(
            sql.SQL("ALTER TABLE {} RENAME TO {}").format(
                sql.Identifier(new.schema, old.name), sql.Identifier(new.name)
            )
        )


def _exists(connection: Connection, name: sql.Identifier) -> bool:
    row = connection.execute("SELECT to_regclass(%s)", [name.as_string()]).fetchone()
    return row is not None and row[0] is not None


def _shape(table: StreamTable) -> tuple[object, ...]:
    """Return all that the index depends on by which publish finds rows."""
    columns = tuple((column.name, column.served) for column in table.columns)
    return columns, served_key(table), _partitioning(table)


def _partitioning(table: StreamTable) -> tuple[Scheme, str] | None:
    """Return the scheme of the table and the type of its column, which no ALTER TABLE changes."""
    partitioning = partition_of(table)
    return None if partitioning is None else (partitioning[0], partitioning[1].served)


def _alter(connection: Connection, table: StreamTable, act: str, *parts: sql.Composable) -> None:
    text = sql.SQL("ALTER TABLE {} ").format(served_name(table)) + sql.SQL(act).format(*parts)
    connection.execute(text)


def _retype(
    connection: Connection, table: StreamTable, old: OutputColumn, new: OutputColumn
) -> None:
    """Change the type of a column and cast its values; delete all rows if that is impossible.

    The cast from or to a type of users might be their own.
    """
    act = "ALTER COLUMN {} TYPE {} USING {}"
    name, type_ = sql.Identifier(new.name), sql.SQL(new.served)
    if not old.type.is_of_users and not new.type.is_of_users:
        try:
            with connection.transaction():
                cast = sql.SQL("{}::{}").format(name, type_)
                _alter(connection, table, act, name, type_, cast)
            return
        except (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.CannotCoerce):
            pass
    connection.execute("SET LOCAL headrace.publishing = 'on'")
    connection.execute(sql.SQL("DELETE FROM {}").format(served_name(table)))
    nothing = sql.SQL("NULL::{}").format(type_)
    _alter(connection, table, act, name, type_, nothing)


def _delete(table: StreamTable, staged: sql.Identifier) -> sql.Composed:
    """Return SQL that deletes the copies of each row beyond the requested number."""
    return sql.SQL(
        "WITH old AS (SELECT s.tableoid AS part, s.ctid AS at, record_send({served}) AS image,"
        " row_number() OVER (PARTITION BY record_send({served})) AS copy FROM {table} s),"
        " new AS (SELECT record_send(ROW({values})) AS image, sum(d.{weight}) AS copies"
        " FROM {staged} d GROUP BY 1)"
        " DELETE FROM {table} WHERE (tableoid, ctid) IN (SELECT old.part, old.at"
        " FROM old LEFT JOIN new USING (image) WHERE old.copy > coalesce(new.copies, 0))"
    ).format(
        served=row(table, sql.SQL("s.")),
        table=served_name(table),
        values=staged_columns(table, "d"),
        weight=sql.Identifier(WEIGHT),
        staged=staged,
    )


def _insert(table: StreamTable, staged: sql.Identifier) -> sql.Composed:
    """Return SQL that inserts the missing copies of each row."""
    return sql.SQL(
        "WITH old AS (SELECT record_send({served}) AS image, count(*) AS copies FROM {table} s"
        " GROUP BY 1)"
        " INSERT INTO {table} ({columns}) SELECT {values} FROM {staged} d"
        " LEFT JOIN old ON old.image = record_send(ROW({values})),"
        " generate_series(1, d.{weight} - coalesce(old.copies, 0))"
    ).format(
        served=row(table, sql.SQL("s.")),
        table=served_name(table),
        columns=column_names(tuple(column.name for column in table.columns)),
        values=staged_columns(table, "d"),
        weight=sql.Identifier(WEIGHT),
        staged=staged,
    )
