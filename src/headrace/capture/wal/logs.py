"""The logs that a process reads: peeked at, but for those that it was asked to stream."""

from __future__ import annotations

import threading
from collections.abc import Callable

from headrace.capture.wal.log import PeekedLog, SlotLog
from headrace.capture.wal.publication import PUBLICATION
from headrace.capture.wal.stream import unheard
from headrace.capture.wal.streamed import Entry, StreamedLog
from headrace.source.connection import Database


class Logs:
    """Logs by the names of their slots. Whoever drops a slot releases its log first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streamed: dict[str, StreamedLog] = {}

    def of(self, database: Database, slot: str) -> SlotLog:
        """The log that a slot of a database hands out."""
        with self._lock:
            return self._known(database, slot) or PeekedLog(database, slot, PUBLICATION)

    def stream(
        self,
        database: Database,
        slot: str,
        ceiling: int,
        heard: Callable[[], None] = unheard,
        tables: frozenset[Entry] = frozenset(),
    ) -> StreamedLog:
        """Have a log streamed from now on; to be called again and again, it begins anew by that.

        The `tables` are those that are read from it.
        """
        with self._lock:
            log = self._known(database, slot)
            if log is None:
                log = StreamedLog(PeekedLog(database, slot, PUBLICATION))
                self._streamed[slot] = log
        log.keep(ceiling, heard, tables)
        return log

    def _known(self, database: Database, slot: str) -> StreamedLog | None:
        """The log that is streamed; one of a database that has another address now is ended."""
        log = self._streamed.get(slot)
        if log is None or log.database is database:
            return log
        del self._streamed[slot]
        log.close()
        return None

    def release(self, slot: str) -> None:
        """Stream a log no longer, and wait until others can have its slot."""
        with self._lock:
            log = self._streamed.pop(slot, None)
        if log is not None:
            log.release()

    def close(self, slot: str | None = None) -> None:
        """Stream a log no longer, or none of them; the server is not waited for."""
        with self._lock:
            slots = list(self._streamed) if slot is None else [slot]
            logs = [self._streamed.pop(one) for one in slots if one in self._streamed]
        for log in logs:
            log.close()
