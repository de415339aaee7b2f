"""The catalog's connection to the home database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from psycopg.pq import TransactionStatus

from headrace.catalog.catalog import Connection
from headrace.errors import InternalError
from headrace.source.faults import translated


class Session:
    """One connection, used by one thread at a time and opened again after it is lost.

    Commits are durable: the session switches asynchronous commit off where it is the server's
    default. Errors of PostgreSQL are raised translated.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._turn = threading.RLock()
        self._connection: Connection | None = None
        self._closed = False

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """Lend the connection, outside any transaction, to one thread; others wait."""
        with self._turn, translated():
            if self._closed:
                raise InternalError("invariant", "the catalog was called after it was closed")
            connection = self._connection
            if connection is None or connection.closed:
                connection = self._connection = self._open()
            # The lock is reentrant: a commit's `apply` that calls the catalog gets here.
            if connection.info.transaction_status != TransactionStatus.IDLE:
                raise InternalError("invariant", "the catalog was called within its own commit")
            yield connection

    def close(self) -> None:
        with self._turn:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _open(self) -> Connection:
        connection = self._connect()
        try:
            connection.execute(
                "SELECT set_config('synchronous_commit', 'on', false)"
                " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
            )
        except BaseException:
            connection.close()
            raise
        return connection
