"""Locking served tables: whoever holds a lock on one delays only publishes of that table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from psycopg import sql

from headrace.catalog import Transaction
from headrace.catalog.records import StreamTable
from headrace.publish.served import Connection, served_name

# All commits share one session: while one waits for a lock, all others wait for it.
LOCK_MILLISECONDS = 100
ATTEMPTS = 50
PAUSE_SECONDS = 0.1


def lock_served(transaction: Transaction, tables: Iterable[StreamTable]) -> None:
    """Lock served tables for writing, or fail soon; nothing later in the transaction waits long.

    The wait for rows that a reader has locked is as short.
    """
    wait = sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(LOCK_MILLISECONDS))
    transaction.execute(wait)
    for table in tables:
        lock = sql.SQL("LOCK TABLE ONLY {} IN ROW EXCLUSIVE MODE").format(served_name(table))
        transaction.execute(lock)


@contextmanager
def waiting_shortly(connection: Connection) -> Iterator[None]:
    """Let statements inside wait for a lock for a moment only, as later sessions queue behind them.

    Use it inside a savepoint: after an error, the rollback to the savepoint restores the lock
    timeout.
    """
    before = connection.execute("SELECT current_setting('lock_timeout')").fetchone()
    connection.execute(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS:d}")
    yield
    connection.execute("SELECT set_config('lock_timeout', %s, true)", before)
