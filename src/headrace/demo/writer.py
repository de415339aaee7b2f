"""The shop at work: a thread that trades from a connection of its own."""

from __future__ import annotations

import random
import threading
from types import TracebackType

import psycopg

from headrace.demo.trade import Till, TradeTotals, trade

PAUSE = 0.03


class Writer:
    """Writes while it is entered; `written` may be asked at any time."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shop", daemon=True)
        self._failure: psycopg.Error | None = None
        self.written = TradeTotals()

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Let the transaction at hand end, and write no more."""
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Raise what went wrong in the thread: capture must never make a statement fail."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                till = Till(connection, random.Random(7))  # noqa: S311
                while not self._stop.wait(PAUSE):
                    self.written = self.written + trade(till)
        except psycopg.Error as error:
            self._failure = error
