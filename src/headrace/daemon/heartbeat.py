"""The heartbeat of the loop: a thread that records every few seconds how old the round is.

The loop itself may wait for long: a publish holds the catalog's connection, and an ingest may copy
a source. So the heartbeat has a thread and a connection of its own, and records the loop's current
activity.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import TracebackType

from headrace.catalog.catalog import Connection
from headrace.catalog.heartbeat import beat
from headrace.daemon.context import logger
from headrace.errors import HeadraceError
from headrace.source.connection import Database
from headrace.source.faults import translated

# Seconds between two writes.
INTERVAL = 5.0


class LoopHeartbeat:
    """Records the rounds of one loop for the time of a `with`.

    `round` and `busy` are called by the loop's thread.
    """

    def __init__(self, database: Database, fence: int) -> None:
        self._database = database
        self._fence = fence
        # A tuple, so that the other thread reads a consistent pair.
        self._round: tuple[float, str | None] = (time.monotonic(), None)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-heartbeat", daemon=True)
        self._connection: Connection | None = None

    def round(self, busy: str | None = None) -> None:
        """Note that a round begins, and the work beside the loop that the round may wait for."""
        self._round = time.monotonic(), busy

    @contextmanager
    def busy(self, activity: str) -> Iterator[None]:
        """Note for a `with` that the loop's thread does something that may take long."""
        before = self._round[1]
        self._round = self._round[0], activity
        try:
            yield
        finally:
            self._round = time.monotonic(), before

    def __enter__(self) -> LoopHeartbeat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._beat()
            while not self._ended.wait(INTERVAL):
                self._beat()
        finally:
            self._close()

    def _beat(self) -> None:
        began, busy = self._round
        try:
            with translated():
                if self._connection is None:
                    self._connection = self._database.connect()
                    # A heartbeat that a crash of the server loses is not worth a flush.
                    self._connection.execute("SET synchronous_commit = off")
                elapsed = timedelta(seconds=max(time.monotonic() - began, 0.0))
                beat(self._connection, self._fence, elapsed, busy)
        except HeadraceError as error:
            # The loop itself detects that the server is gone.
            logger.info("heartbeat: %s", error)
            self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()
