"""Another index of a served table, made while others read the table.

    build beside   CREATE INDEX CONCURRENTLY; for a primary key also a check that no part is NULL
    take over      in the transaction that records the option: a key that may break is dropped here
    tidy           DROP INDEX CONCURRENTLY of what no record asks for

None of them keeps readers waiting, but for a moment where a primary key comes or a declared key
goes: that needs the table for itself, and gives up soon if somebody reads it. A crash leaves an
index more than the record of the table asks for, which recovery drops, or a publish whose rows it
refuses. PostgreSQL builds no index of a partitioned table so: it is built for each partition, and
the transaction, which needs the table for itself, only puts these together.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psycopg
from psycopg import sql

from headrace.catalog.records import StreamTable
from headrace.errors import HeadraceError
from headrace.publish.lock import ATTEMPTS, LOCK_MILLISECONDS, PAUSE_SECONDS
from headrace.publish.served import (
    Connection,
    create_index,
    drop_index,
    index_name,
    index_sql,
    keeping_key,
    leaves,
    partition_column,
    partition_index_name,
    served_name,
)
from headrace.publish.served_key import key_violated, served_key
from headrace.source.connection import Database
from headrace.source.faults import translated

# An index is finished when all that began before it has ended.
BUILD_SECONDS = 600
TIDY_SECONDS = 5

# Indexes that are not those of a primary key, and checks, of served tables. Of partitions, those
# that are not part of an index of the served table.
_OURS = """
SELECT n.nspname, t.relname, n.nspname, c.relname, true, false
FROM pg_index x
JOIN pg_class c ON c.oid = x.indexrelid AND c.relkind = 'i'
JOIN pg_class t ON t.oid = x.indrelid AND NOT t.relispartition
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE starts_with(c.relname, 'headrace_rows_')
    AND NOT EXISTS (SELECT FROM pg_constraint o WHERE o.conindid = c.oid AND o.contype = 'p')
UNION ALL
SELECT n.nspname, t.relname, s.nspname, c.relname, true, true
FROM pg_index x
JOIN pg_class c ON c.oid = x.indexrelid AND c.relkind = 'i' AND NOT c.relispartition
JOIN pg_namespace s ON s.oid = c.relnamespace
JOIN pg_inherits i ON i.inhrelid = x.indrelid
JOIN pg_class t ON t.oid = i.inhparent AND t.relkind = 'p'
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE starts_with(c.relname, 'headrace_rows_')
UNION ALL
SELECT n.nspname, t.relname, n.nspname, o.conname, false, false
FROM pg_constraint o
JOIN pg_class t ON t.oid = o.conrelid AND NOT t.relispartition
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE o.contype = 'c' AND starts_with(o.conname, 'headrace_check_')
"""

_HAS_INDEX = """
SELECT FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
WHERE x.indrelid = %s::text::regclass AND c.relname = %s AND x.indisvalid
"""

logger = logging.getLogger(__name__)


def needs_index(database: Database, old: StreamTable, new: StreamTable) -> bool:
    """Return whether the new options request another index of the served table.

    If somebody dropped the table, the next publish creates it again, with its index.
    """
    if index_name(old) == index_name(new):
        return False
    with database.session() as connection, translated():
        name = served_name(old).as_string(connection)
        return connection.execute("SELECT to_regclass(%s)", [name]).fetchone() != (None,)


def build_beside(database: Database, table: StreamTable) -> None:
    """Build the index that the table asks for, next to the one that it has.

    `key-violated` if its rows do not keep the key; nothing is left then.
    """
    key = served_key(table)
    with database.session() as connection, translated():
        _drop_unfinished(connection, table)
        try:
            if key is not None and key.primary:
                _check_no_nulls(connection, table, key.columns)
            _wait_at_most(connection, BUILD_SECONDS)
            with keeping_key(table):
                for statement in _building(connection, table):
                    connection.execute(statement)
            connection.execute("RESET lock_timeout")
        except (psycopg.Error, HeadraceError):
            connection.execute("RESET lock_timeout")
            _drop_unfinished(connection, table)
            raise


def _building(connection: Connection, table: StreamTable) -> list[sql.Composed]:
    if partition_column(table) is None:
        return [index_sql(table, beside=True)]
    return [index_sql(table, beside=True, partition=name) for name, _ in leaves(connection, table)]


def take_over(transaction: Connection, old: StreamTable, new: StreamTable) -> None:
    """Make the index that was built the index of the table; both have the name of `old`."""
    transaction.execute(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS:d}")
    before, after = served_key(old), served_key(new)
    if partition_column(new) is not None:
        _take_over_partitioned(transaction, old, new)
    else:
        if before is not None and before.may_break:
            drop_index(transaction, old)
        if after is not None and after.primary:
            name = sql.Identifier(index_name(new))
            _add_primary_key(transaction, served_name(new), name)
    if after is not None and after.primary:
        dropping = sql.SQL("ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}")
        check = sql.Identifier(_check_name(new))
        transaction.execute(dropping.format(served_name(new), check))


def _take_over_partitioned(transaction: Connection, old: StreamTable, new: StreamTable) -> None:
    """Replace the index of a partitioned table; PostgreSQL takes up those of its partitions.

    An index of a partition that was attached since they were built is built here.
    """
    locking = sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE")
    transaction.execute(locking.format(served_name(new)))
    # A table has at most one primary key, so the old one goes first.
    drop_index(transaction, old)
    key = served_key(new)
    if key is not None and key.primary:
        for partition, _ in leaves(transaction, new):
            index = partition_index_name(new, partition)
            result = transaction.execute(_HAS_INDEX, (partition.as_string(transaction), index))
            if result.fetchone() is not None:
                _add_primary_key(transaction, partition, sql.Identifier(index))
    create_index(transaction, new)


def _add_primary_key(transaction: Connection, table: sql.Identifier, index: sql.Identifier) -> None:
    text = sql.SQL("ALTER TABLE {0} ADD CONSTRAINT {1} PRIMARY KEY USING INDEX {1}")
    transaction.execute(text.format(table, index))


def tidy(database: Database, tables: Iterable[StreamTable]) -> bool:
    """Drop the indexes and checks that no record requires; return whether all are dropped.

    What another session blocks stays until the next call.
    """
    recorded = {(table.schema, table.name): index_name(table) for table in tables}
    try:
        with database.session() as connection, translated():
            for extra in _ours(connection):
                if extra.table not in recorded:
                    continue
                if extra.of_partition or extra.name != recorded[extra.table]:
                    _drop(connection, extra)
    except HeadraceError as error:
        fields = {"code": error.code, "error": error.message}
        logger.warning("an index that is not needed stays for now", extra=fields)
        return False
    return True


def is_refused_by_ours(error: BaseException | None) -> bool:
    """Return whether an index or a check of ours refused a row, which a crash may have left."""
    refusals = (
        psycopg.errors.UniqueViolation,
        psycopg.errors.CheckViolation,
        psycopg.errors.ProgramLimitExceeded,
    )
    return isinstance(error, refusals) and (error.diag.constraint_name or "").startswith(
        ("headrace_rows_", "headrace_check_")
    )


def _drop_unfinished(connection: Connection, table: StreamTable) -> None:
    """Drop the remains of an attempt to build the index."""
    names = (index_name(table), _check_name(table))
    for extra in _ours(connection):
        if extra.table == (table.schema, table.name) and (
            extra.of_partition or extra.name in names
        ):
            _drop(connection, extra)


@dataclass(frozen=True)
class _Leftover:
    """An index or a check of a served table, whose schema and name are given, or of a partition."""

    table: tuple[str, str]
    schema: str
    name: str
    is_index: bool
    of_partition: bool


def _ours(connection: Connection) -> list[_Leftover]:
    return [
        _Leftover((schema, table), *others)
        for schema, table, *others in connection.execute(_OURS).fetchall()
    ]


def _drop(connection: Connection, extra: _Leftover) -> None:
    if not extra.is_index:
        text = sql.SQL("ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}")
        _locking(connection, text.format(sql.Identifier(*extra.table), sql.Identifier(extra.name)))
        return
    _wait_at_most(connection, TIDY_SECONDS)
    try:
        index = sql.Identifier(extra.schema, extra.name)
        connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(index))
    finally:
        connection.execute("RESET lock_timeout")


def _locking(connection: Connection, statement: sql.Composed) -> None:
    """Execute a statement that needs the table for itself, without keeping readers waiting.

    Readers queue behind the statement while it waits for its lock, so it waits for a moment only,
    several times.
    """
    connection.execute(f"SET lock_timeout = {LOCK_MILLISECONDS:d}")
    try:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                connection.execute(statement)
                return
            except psycopg.errors.LockNotAvailable:
                if attempt == ATTEMPTS:
                    raise
            time.sleep(PAUSE_SECONDS)
    finally:
        connection.execute("RESET lock_timeout")


def _check_no_nulls(connection: Connection, table: StreamTable, key: tuple[str, ...]) -> None:
    """Raise `key-violated` if a part of the key is NULL, so that the primary key need not scan."""
    on, name = served_name(table), sql.Identifier(_check_name(table))
    tests = sql.SQL(" AND ").join(
        sql.SQL("{} IS NOT NULL").format(sql.Identifier(name)) for name in key
    )
    adding = sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} CHECK ({}) NOT VALID")
    _locking(connection, adding.format(on, name, tests))
    try:
        connection.execute(sql.SQL("ALTER TABLE {} VALIDATE CONSTRAINT {}").format(on, name))
    except psycopg.errors.CheckViolation as error:
        raise key_violated(table, "A part of it is NULL in some row.") from error


def _check_name(table: StreamTable) -> str:
    return f"headrace_check_{table.relation}"


def _wait_at_most(connection: Connection, seconds: int) -> None:
    connection.execute(f"SET lock_timeout = {seconds * 1000:d}")
