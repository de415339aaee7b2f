"""The client that commits marks, and those that look when served tables show them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count

import psycopg

from bench.load.lag import Lags, lags
from bench.load.shop import FIRST_MARK, MARK, VIEWS, Sql

# Seconds between two looks of a poller at its table.
POLL = 0.025
NAME = "load observer"
MARKS = count(FIRST_MARK)


class Repeater(threading.Thread):
    """A thread with a connection of its own that repeats one act; it keeps an error."""

    def __init__(self, dsn: str, pause: float, name: str) -> None:
        super().__init__(name=name)
        self.error: str | None = None
        self._pause = pause
        self._stop_now = threading.Event()
        self._sql: Sql = psycopg.connect(dsn, autocommit=True, application_name=NAME)

    def act(self, sql: Sql) -> None:
        raise NotImplementedError

    def run(self) -> None:
        due = time.monotonic()
        try:
            while not self._stop_now.is_set():
                self.act(self._sql)
                due = max(due + self._pause, time.monotonic() - self._pause)
                self._stop_now.wait(max(0.0, due - time.monotonic()))
        except psycopg.Error as error:
            self.error = f"{self.name}: {type(error).__name__}: {error}"
        finally:
            self._sql.close()

    def stop(self) -> None:
        self._stop_now.set()
        if self.ident is None:
            self._sql.close()
        else:
            self.join()


class Marker(Repeater):
    """Commits marks, and notes when each commit had returned."""

    def __init__(self, dsn: str, marks: float) -> None:
        super().__init__(dsn, 1 / marks, "marker")
        self.committed: dict[int, float] = {}

    def act(self, sql: Sql) -> None:
        mark = next(MARKS)
        with sql.pipeline(), sql.transaction():
            for statement in MARK:
                sql.execute(statement.encode(), {"mark": mark})
        self.committed[mark] = time.monotonic()


class Poller(Repeater):
    """Looks which mark one table shows, and notes when it is another."""

    def __init__(self, dsn: str, table: str) -> None:
        super().__init__(dsn, POLL, table)
        self.shown: list[tuple[float, int]] = []
        self._query = VIEWS[table].shown(table).encode()

    def act(self, sql: Sql) -> None:
        row = sql.execute(self._query).fetchone()
        mark = 0 if row is None or row[0] is None else int(row[0])
        if not self.shown or mark > self.shown[-1][1]:
            self.shown.append((time.monotonic(), mark))

    def shows(self, mark: int) -> bool:
        return bool(self.shown) and self.shown[-1][1] >= mark


class Observers:
    """One marker, and a poller for each table: a table that is locked delays no other's."""

    def __init__(self, dsn: str, tables: Iterable[str], marks: float) -> None:
        self._marker = Marker(dsn, marks)
        self._pollers = [Poller(dsn, table) for table in tables]
        self._end = 0.0

    @contextmanager
    def watching(self, drain: float) -> Iterator[None]:
        """Commit marks meanwhile; afterwards wait until all tables show the last, at most so long.

        Marks begin once every poller has looked.
        """
        try:
            for poller in self._pollers:
                poller.start()
            _until(drain, lambda: all(poller.shown or poller.error for poller in self._pollers))
            self._marker.start()
            yield
            self._marker.stop()
            last = max(self._marker.committed, default=0)
            _until(drain, lambda: all(p.shows(last) or p.error for p in self._pollers))
            self._end = time.monotonic()
        finally:
            for thread in (self._marker, *self._pollers):
                thread.stop()

    def lags(self) -> dict[str, Lags]:
        """Return the lags of all marks by table."""
        committed = self._marker.committed
        return {poller.name: lags(committed, poller.shown, self._end) for poller in self._pollers}

    def errors(self) -> list[str]:
        threads = (self._marker, *self._pollers)
        return [thread.error for thread in threads if thread.error is not None]


def _until(patience: float, met: Callable[[], bool]) -> None:
    """Wait until a condition is met, at most so many seconds."""
    deadline = time.monotonic() + patience
    while not met() and time.monotonic() < deadline:
        time.sleep(POLL)
