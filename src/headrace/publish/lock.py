"""Locking served tables: somebody who has one locked keeps waiting only those that publish it."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg import sql

from headrace.catalog import Transaction
from headrace.catalog.records import StreamTable
from headrace.publish.served import served_name

# All commits share one session: while one waits for a lock, all others wait for it.
LOCK_MILLISECONDS = 100
ATTEMPTS = 50
PAUSE_SECONDS = 0.1


def lock_served(transaction: Transaction, tables: Iterable[StreamTable]) -> None:
    """Lock served tables for writing, or fail soon; nothing later in the transaction waits long.

    Rows that a reader has locked are waited for as shortly.
    """
    wait = sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(LOCK_MILLISECONDS))
    transaction.execute(wait)
    for table in tables:
        lock = sql.SQL("LOCK TABLE ONLY {} IN ROW EXCLUSIVE MODE").format(served_name(table))
        transaction.execute(lock)
