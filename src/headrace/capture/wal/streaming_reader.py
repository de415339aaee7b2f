"""STREAMING"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pyarrow as pa

from headrace.capture.cut import flush
from headrace.capture.wal.publication import PUBLICATION
from headrace.capture.wal.slot import read_status
from headrace.capture.wal.slot_reader import PeekedLog, SlotLog
from headrace.capture.wal.stream import Stream, unheard
from headrace.capture.wal.visibility import Committed
from headrace.errors import HeadraceError, Transient, Unavailable
from headrace.source.connection import Database
from headrace.source.faults import translated

# After so many seconds without anything new the server is given something to send, and after so
# many more the stream is given up.
NUDGE_SECONDS, SILENCE_SECONDS = 1.0, 60.0
# How long to wait before a stream that failed is begun again: longer each time it was not begun.
AGAIN_SECONDS, LONGEST_SECONDS = 1.0, 60.0
# The server lets go of the slot of a stream that ended by itself in so many seconds, or is told to.
FREE_SECONDS, PAUSE_SECONDS = 2.0, 0.02

# A table in the publication: the row of it, and the transaction that wrote that row.
Entry = tuple[int, str]

logger = logging.getLogger(__name__)


class StreamedLog:
    """`reason` says why it is peeked at, if it is.

    One thread keeps and acknowledges it. Another may ask for transactions meanwhile: a stream that
    either of them gives up is peeked at, or an error, for the other.
    """

    def __init__(self, peeked: PeekedLog) -> None:
        self.stream: Stream | None = None
        self.reason: str | None = None
        self._peeked = peeked
        self._tables: frozenset[Entry] = frozenset()
        self._failures = 0
        self._not_before = 0.0

    @property
    def database(self) -> Database:
        return self._peeked.database

    def keep(
        self,
        ceiling: int,
        heard: Callable[[], None] = unheard,
        tables: frozenset[Entry] = frozenset(),
    ) -> None:
        """Begin a stream if there is none, and it is time to; what is told counts from now on.

        One that began before one of the `tables` was read from the log is ended first: only that
        is waited for.
        """
        self._notice()
        if self.stream is not None and not tables <= self._tables:
            with suppress(HeadraceError):
                self.release()
        self._tables = tables
        if self.stream is not None:
            self.stream.ceiling, self.stream.heard = ceiling, heard
        elif time.monotonic() >= self._not_before:
            log = self._peeked
            try:
                self.stream = Stream(
                    log.database, log.slot, log.publication, ceiling=ceiling, heard=heard
                )
            except (OSError, RuntimeError) as error:
                self._put_off(_unkept(error))

    def news(self) -> int | None:
        stream = self._notice()
        return None if stream is None else stream.news()

    def transactions(self, upto: int, limit: int | None = None) -> tuple[Committed, ...]:
        stream = self._at(upto)
        if stream is None:
            return self._peeked.transactions(upto, limit)
        return stream.spool.transactions(upto, limit)

    def messages(self, upto: int) -> Iterator[pa.Array]:
        stream = self._at(upto)
        return self._peeked.messages(upto) if stream is None else self._spooled(stream, upto)

    def _spooled(self, stream: Stream, upto: int) -> Iterator[pa.Array]:
        try:
            yield from stream.spool.messages(upto)
        except (OSError, ValueError) as error:
            # Some of it was handed out: whoever asks again is answered by peeks.
            unkept = _unkept(error)
            self._give_up(stream, unkept)
            raise unkept from error

    def acknowledge(self, position: int) -> None:
        stream = self._notice()
        if stream is None:
            self._peeked.acknowledge(position)
        else:
            stream.acknowledge(position)

    def close(self) -> None:
        """End the stream; the server lets go of the slot a moment later."""
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.close()

    def release(self) -> None:
        """End the stream, and wait until others can have the slot."""
        stream = self.stream
        self.close()
        if stream is not None and stream.pid is not None:
            _free(self._peeked.database, self._peeked.slot, stream.pid)

    def _at(self, upto: int) -> Stream | None:
        """The stream, once all up to a position has arrived; None if that cannot be had."""
        stream = self._notice()
        if stream is None:
            return None
        if not stream.wait(upto, NUDGE_SECONDS):
            if stream.failure is None:
                # The position may lie where no record of the log ends.
                flush(self._peeked.database)
            if not stream.wait(upto, SILENCE_SECONDS):
                self._give_up(stream)
                return None
        return stream

    def _notice(self) -> Stream | None:
        """The stream; one that has failed is forgotten."""
        stream = self.stream
        if stream is None:
            return None
        if stream.failure is not None:
            self._give_up(stream)
            return None
        if stream.reached:
            self._failures, self.reason = 0, None
        return stream

    def _give_up(self, stream: Stream, error: HeadraceError | None = None) -> None:
        if stream is not self.stream:
            return
        if stream.reached:
            self._failures = 0
        silent = Transient("slot-busy", "the server sends nothing")
        self._put_off(error or stream.failure or silent)
        with suppress(HeadraceError):
            self.release()

    def _put_off(self, error: HeadraceError) -> None:
        """Begin no stream for a while, and tell why."""
        reason = _told(error)
        if reason != self.reason:
            logger.warning("the log is not streamed", extra={"code": error.code, "error": reason})
        pause = min(AGAIN_SECONDS * 2**self._failures, LONGEST_SECONDS)
        self.reason, self._failures = reason, min(self._failures + 1, 10)
        self._not_before = time.monotonic() + pause


def _unkept(error: Exception) -> Unavailable:
    return Unavailable("store-full", f"the stream cannot be kept: {error}")


def _told(error: HeadraceError) -> str:
    return error.message if error.detail is None else f"{error.message}: {error.detail}"


def _free(database: Database, slot: str, pid: int) -> None:
    """Wait until the process of a session that was ended has let go of the slot."""
    patient_until = time.monotonic() + FREE_SECONDS
    with database.session() as connection:
        while (status := read_status(connection, slot)) is not None and status.active_pid == pid:
            if time.monotonic() > patient_until:
                milliseconds = int(FREE_SECONDS * 1000)
                with translated():
                    connection.execute("SELECT pg_terminate_backend(%s, %s)", (pid, milliseconds))
                return
            time.sleep(PAUSE_SECONDS)


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
