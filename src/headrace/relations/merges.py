"""Sums of many rows, made beside refreshes; whoever writes the relation puts them in place.

A daemon's threads write one relation each, from an exact version of its log, so nobody else can
commit to it. A sum is therefore only written here, by one thread for all relations, into a folder
that no log names. The next compaction of the relation takes it. Until then, and if the process
ends before, the files that it sums up are what counts. A folder that nobody takes is removed where
it failed, else by a vacuum.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Lock

from headrace.errors import HeadraceError
from headrace.store import LogFile

# What has failed is not tried again for so long.
PAUSE_SECONDS = 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sum:
    """The folder that the sum of some files was written into, and the rows that it has."""

    folder: str
    rows: int


@dataclass(frozen=True)
class CompactedRun:
    """Files of a log, neighbours in it, and their sum."""

    chosen: tuple[LogFile, ...]
    sum: Sum

    def fits(self, files: tuple[LogFile, ...], needed: Iterable[int]) -> bool:
        """Whether the files are all still there, and nobody stands between their epochs."""
        first, last = self.chosen[0].first_epoch, self.chosen[-1].last_epoch
        return set(self.chosen) <= set(files) and not any(first <= e < last for e in needed)


class Merges:
    """At most one sum of a relation is made at a time."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "headrace-merge")
        self._lock = Lock()
        self._begun: dict[str, tuple[tuple[LogFile, ...], Future[Sum]]] = {}
        self._not_before: dict[str, float] = {}
        self._closed = False

    def begin(self, relation: str, chosen: tuple[LogFile, ...], work: Callable[[], Sum]) -> None:
        """Have `work` write the sum of the chosen files, unless one of the relation failed lately.

        None of the relation is under way.
        """
        with self._lock:
            assert relation not in self._begun
            if not self._closed and self._not_before.get(relation, 0.0) <= time.monotonic():
                self._begun[relation] = chosen, self._pool.submit(work)

    def summed(self, relation: str) -> tuple[LogFile, ...]:
        """The files whose sum is being made, or is there and was not taken yet."""
        with self._lock:
            chosen, _ = self._begun.get(relation, ((), None))
        return chosen

    def take(self, relation: str) -> CompactedRun | None:
        """What was made of the relation; None if nothing was, or not yet.

        A failure is told, and the files may be chosen again after a while.
        """
        with self._lock:
            chosen, future = self._begun.get(relation, ((), None))
            if future is None or not future.done():
                return None
            del self._begun[relation]
        try:
            return CompactedRun(chosen, future.result())
        except Exception as error:  # noqa: BLE001  the files are still there, whatever it was
            code = error.code if isinstance(error, HeadraceError) else type(error).__name__
            logger.warning("merge failed", extra={"code": code, "error": str(error)})
            with self._lock:
                self._not_before[relation] = time.monotonic() + PAUSE_SECONDS
            return None

    def forget(self, relation: str) -> bool:
        """Nobody will take what was made of a relation; False while that is still being written."""
        with self._lock:
            _, future = self._begun.get(relation, ((), None))
            if future is not None and not future.done() and not future.cancel():
                return False
            self._begun.pop(relation, None)
            self._not_before.pop(relation, None)
        return True

    def wait(self, seconds: float | None = None) -> None:
        """Wait for all that is under way, or so long."""
        with self._lock:
            # What was cancelled before it began never tells that it has ended.
            futures = [future for _, future in self._begun.values() if not future.cancelled()]
        wait(futures, seconds)

    def close(self) -> None:
        """Begin nothing more. What is being written goes on until it ends or is cancelled."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
