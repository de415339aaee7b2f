"""Another index of a served table, made while others read the table.

    build beside   CREATE INDEX CONCURRENTLY; for a primary key also a check that no part is NULL
    take over      in the transaction that records the option: a key that may break goes here
    tidy           DROP INDEX CONCURRENTLY of what no record asks for

None of them keeps readers waiting, but for a moment where a primary key comes or a declared key
goes: that needs the table for itself, and gives up soon if somebody reads it. A crash leaves an
index more than the record of the table asks for, which recovery drops. PostgreSQL cannot build one
of a partitioned table so: it is built in the transaction, which no reader waits for.
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
    partition_column,
    served_name,
)
from headrace.publish.served_key import key_violated, served_key
from headrace.source.connection import Database
from headrace.source.faults import translated

# An index is finished when all that began before it has ended.
BUILD_SECONDS = 600
TIDY_SECONDS = 5

# Indexes that are not those of a primary key, and checks, of served tables.
_OURS = """
SELECT n.nspname, t.relname, c.relname, true
FROM pg_index x
JOIN pg_class c ON c.oid = x.indexrelid AND c.relkind = 'i'
JOIN pg_class t ON t.oid = x.indrelid AND NOT t.relispartition
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE starts_with(c.relname, 'headrace_rows_')
    AND NOT EXISTS (SELECT FROM pg_constraint o WHERE o.conindid = c.oid AND o.contype = 'p')
UNION ALL
SELECT n.nspname, t.relname, o.conname, false
FROM pg_constraint o
JOIN pg_class t ON t.oid = o.conrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE o.contype = 'c' AND starts_with(o.conname, 'headrace_check_')
"""

logger = logging.getLogger(__name__)


def needs_index(database: Database, old: StreamTable, new: StreamTable) -> bool:
    """Whether other options ask for another index of the served table.

    One that somebody dropped is made again, with its index, by the next publish.
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
    if partition_column(table) is not None:
        return
    key = served_key(table)
    with database.session() as connection, translated():
        _drop_unfinished(connection, table)
        try:
            if key is not None and key.primary:
                _check_no_nulls(connection, table, key.columns)
            _wait_at_most(connection, BUILD_SECONDS)
            with keeping_key(table):
                connection.execute(index_sql(table, beside=True))
            connection.execute("RESET lock_timeout")
        except (psycopg.Error, HeadraceError):
            connection.execute("RESET lock_timeout")
            _drop_unfinished(connection, table)
            raise


def take_over(transaction: Connection, old: StreamTable, new: StreamTable) -> None:
    """Let the index that was built be the one of the table; both have the name of `old`."""
    transaction.execute(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS:d}")
    before, after = served_key(old), served_key(new)
    if partition_column(new) is not None:
        # A table has at most one primary key, so the old one goes first.
        drop_index(transaction, old)
        create_index(transaction, new)
        return
    if before is not None and before.may_break:
        drop_index(transaction, old)
    if after is not None and after.primary:
        name = sql.Identifier(index_name(new))
        making = sql.SQL("ALTER TABLE {0} ADD CONSTRAINT {1} PRIMARY KEY USING INDEX {1}")
        transaction.execute(making.format(served_name(new), name))
        dropping = sql.SQL("ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}")
        transaction.execute(dropping.format(served_name(new), sql.Identifier(_check_name(new))))


def tidy(database: Database, tables: Iterable[StreamTable]) -> None:
    """Drop what no record asks for; where somebody is in the way, it stays until the next time."""
    wanted = {(one.schema, one.name): index_name(one) for one in tables}
    try:
        with database.session() as connection, translated():
            for one in _ours(connection):
                if one.table in wanted and one.name != wanted[one.table]:
                    _drop(connection, one)
    except HeadraceError as error:
        fields = {"code": error.code, "error": error.message}
        logger.warning("an index that is not needed stays for now", extra=fields)


def _drop_unfinished(connection: Connection, table: StreamTable) -> None:
    """Drop what an attempt to build the index has left."""
    for one in _ours(connection):
        if one.table == (table.schema, table.name) and one.name in (
            index_name(table),
            _check_name(table),
        ):
            _drop(connection, one)


@dataclass(frozen=True)
class _Ours:
    """An index or a check that hangs on a table, whose schema and name are given."""

    table: tuple[str, str]
    name: str
    is_index: bool


def _ours(connection: Connection) -> list[_Ours]:
    return [
        _Ours((schema, table), name, is_index)
        for schema, table, name, is_index in connection.execute(_OURS).fetchall()
    ]


def _drop(connection: Connection, one: _Ours) -> None:
    if not one.is_index:
        text = sql.SQL("ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}")
        _locking(connection, text.format(sql.Identifier(*one.table), sql.Identifier(one.name)))
        return
    _wait_at_most(connection, TIDY_SECONDS)
    try:
        index = sql.Identifier(one.table[0], one.name)
        connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(index))
    finally:
        connection.execute("RESET lock_timeout")


def _locking(connection: Connection, statement: sql.Composed) -> None:
    """Execute a statement that needs the table for itself, without keeping readers waiting.

    They wait for it as long as it waits for others, so it does that for a moment, several times.
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
    """Find out whether a part of the key is NULL, so that the primary key need not."""
    on, name = served_name(table), sql.Identifier(_check_name(table))
    tests = sql.SQL(" AND ").join(
        sql.SQL("{} IS NOT NULL").format(sql.Identifier(one)) for one in key
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
