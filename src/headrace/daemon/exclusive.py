"""Exclusive work: requested commands and rebuilds of tables, one at a time.

Nothing else is written meanwhile.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from headrace.catalog.records import Request, StreamTable, is_stale
from headrace.daemon.context import ENDING, DaemonContext, logger
from headrace.daemon.requests import RequestExecutor
from headrace.errors import HeadraceError, internal_error
from headrace.lifecycle.rebuild import refresh


@dataclass(frozen=True)
class ExclusiveJob:
    """One piece of work; for a request also the request itself."""

    work: Callable[[], None]
    request: Request | None = None


class ExclusiveQueue:
    """A queue and the thread that works on its first piece; used by the daemon's own thread."""

    def __init__(self, context: DaemonContext) -> None:
        self._context = context
        self._executor = RequestExecutor(context.engine)
        self._waiting: deque[ExclusiveJob] = deque()
        self._thread: threading.Thread | None = None
        self._ending: HeadraceError | None = None
        self._done = threading.Event()

    @property
    def wanted(self) -> bool:
        """Return whether nothing else may be started: a piece of work waits, or is being done."""
        return bool(self._waiting) or self._thread is not None

    def take_request(self) -> bool:
        """Put the request that has waited longest into the queue; return False if there is none."""
        request = self._executor.take(self._context.lease)
        if request is None:
            return False
        self._context.report(f"{request.command.get('verb')}, asked for by {request.requested_by}")

        def perform() -> None:
            if not self._executor.perform(request):
                self._context.recover()

        self._waiting.append(ExclusiveJob(perform, request))
        return True

    def rebuild(self, table: StreamTable) -> None:
        """Put the rebuild of a table, and of all that the rebuild needs, into the queue."""
        self._context.report(f"rebuilding {table.schema}.{table.name}")
        self._waiting.append(ExclusiveJob(lambda: self._rebuild(table)))

    def done(self) -> bool:
        """Return whether a piece of work ended since the last call; raise what ends the daemon.

        Until `done` returns True the piece counts as being done; then the catalog has to be read
        again.
        """
        if not self._done.is_set():
            return False
        self._done.clear()
        self._thread = None
        if self._ending is not None:
            raise self._ending
        return True

    def go_on(self) -> None:
        """Begin with the next piece, if none is being done; call only while no refresh runs."""
        if self._thread is None and self._waiting:
            work = self._waiting.popleft().work
            self._thread = threading.Thread(target=self._do, args=(work,), name="headrace-alone")
            self._thread.start()

    def end(self) -> None:
        """Wait for the piece that is being done; give the other requests back to the catalog."""
        if self._thread is not None:
            self._thread.join()
        self._executor.close()
        for piece in self._waiting:
            if piece.request is not None:
                self._give_back(piece.request)

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except HeadraceError as error:
            self._ending = error
        except Exception as error:  # noqa: BLE001  nobody knows what it left behind
            logger.exception("work alone")
            self._ending = internal_error("complete a request", error)
        finally:
            self._done.set()
            self._context.listener.wake()

    def _give_back(self, request: Request) -> None:
        try:
            self._executor.give_back(request)
        except HeadraceError as error:
            # Without the server the client gets `request-lost`, although nothing was done for it.
            self._context.failed("giving back a request", error)

    def _rebuild(self, table: StreamTable) -> None:
        try:
            refresh(self._context.engine, table.schema, table.name)
        except HeadraceError as error:
            self._context.failed(f"{table.schema}.{table.name}", error)
            if error.code in ENDING:
                raise
            self._context.recover()
        except Exception:  # noqa: BLE001  one bad table never stops the others
            logger.exception("%s.%s", table.schema, table.name)
            self._context.recover()
        else:
            self._forget_retry(table)

    def _forget_retry(self, table: StreamTable) -> None:
        """Have a table that was rebuilt follow its schedule at once.

        A table that is still to be rebuilt keeps the pause before the next attempt.
        """
        state = self._context.engine.catalog.state()
        current = state.stream_table(table.schema, table.name)
        if current is not None and not current.is_to_be_rebuilt and not is_stale(current):
            for relation in (table.relation, current.relation):
                self._context.memory.retry_at.pop(relation, None)
