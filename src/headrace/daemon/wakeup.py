"""The waiting of a daemon: for new requests, for work that ended, for the next round.

One connection to the home database probes for pending changes and receives notifications of
requests; with a pair of sockets any other thread, or a signal handler, wakes the waiting thread.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from psycopg import Connection, sql

from headrace.capture.pending import has_pending_changes, question
from headrace.catalog.requests import CHANNEL
from headrace.source.connection import Database
from headrace.source.faults import translated


class PendingProbe:
    """Probes one database, over a given connection, for pending changes."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        with translated():
            connection.execute("SET enable_seqscan = off")
        self._asked: tuple[tuple[int, ...], str] | None = None
        self._question: bytes | None = None

    def since(self, sources: Sequence[int], snapshot: str) -> bool:
        """Return whether a source, by its oid, has changes that its cut's snapshot does not see."""
        question_key = (tuple(sources), snapshot)
        if question_key != self._asked or self._question is None:
            self._asked, self._question = question_key, question(sources, snapshot)
        return has_pending_changes(self._connection, self._question)

    def close(self) -> None:
        self._connection.close()


class WakeupListener:
    """Waits for requests; used by one thread, except for `wake`.

    `probe` probes the home database for pending changes, over the same connection. Errors of
    PostgreSQL are raised translated.
    """

    def __init__(self, database: Database) -> None:
        self._connection: Connection[Any] = database.connect()
        self.probe = PendingProbe(self._connection)
        with translated():
            self._connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)

    def wait(self, seconds: float) -> bool:
        """Wait for so many seconds or until woken; return whether there may be a new request."""
        with translated():
            heard = any(True for _ in self._connection.notifies(timeout=0))
            if not heard:
                poll = select.poll()
                poll.register(self._connection.fileno(), select.POLLIN)
                poll.register(self._woken, select.POLLIN)
                ready = dict(poll.poll(seconds * 1000))
                if self._connection.fileno() in ready:
                    heard = any(True for _ in self._connection.notifies(timeout=0))
        with suppress(BlockingIOError):
            self._woken.recv(4096)
        return heard

    def wake(self) -> None:
        """End the wait now; from any thread. Without effect once the listener is closed."""
        with suppress(OSError):
            self._waker.send(b"x")

    def close(self) -> None:
        self._connection.close()
        self._woken.close()
        self._waker.close()

    def __enter__(self) -> WakeupListener:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
