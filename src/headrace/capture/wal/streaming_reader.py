"""Readers of slots that stream while the server allows it, and peek otherwise.

A stream occupies the slot, so it is ended before a peek, and what it had received is discarded. A
server may keep using the publication as of the start of a stream, so a stream is restarted when a
table is read from the WAL for the first time.
"""

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
from headrace.capture.wal.slot_reader import PeekingReader, SlotReader
from headrace.capture.wal.stream import Stream, ignore_changes
from headrace.capture.wal.visibility import Committed
from headrace.errors import HeadraceError, Transient, Unavailable
from headrace.source.connection import Database
from headrace.source.faults import translated

# After so many seconds without data a WAL record is written for the server to send, and after so
# many more the stream is ended.
NUDGE_SECONDS, SILENCE_SECONDS = 1.0, 60.0
# Backoff before a failed stream is restarted: doubled after each failed start.
AGAIN_SECONDS, LONGEST_SECONDS = 1.0, 60.0
# How long the server may take to release the slot of an ended stream before its process is ended.
FREE_SECONDS, PAUSE_SECONDS = 2.0, 0.02

# A table in the publication: the row of it, and the transaction that wrote that row.
Entry = tuple[int, str]

logger = logging.getLogger(__name__)


class StreamingReader:
    """Reads a slot by a stream, or by peeks; `reason` is why it is not streamed.

    One thread calls `keep` and `acknowledge`. Another may read transactions meanwhile: if either
    ends the stream, the other gets the result of a peek, or an error.
    """

    def __init__(self, peeked: PeekingReader) -> None:
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
        heard: Callable[[], None] = ignore_changes,
        tables: frozenset[Entry] = frozenset(),
    ) -> None:
        """Start a stream if there is none and the backoff is over; the arguments apply from now on.

        A stream that began before one of the `tables` entered WAL mode is ended first, and only
        that is waited for.
        """
        self._running_stream()
        if self.stream is not None and not tables <= self._tables:
            with suppress(HeadraceError):
                self.release()
        self._tables = tables
        if self.stream is not None:
            self.stream.ceiling, self.stream.heard = ceiling, heard
        elif time.monotonic() >= self._not_before:
            peeked = self._peeked
            try:
                self.stream = Stream(
                    peeked.database, peeked.slot, peeked.publication, ceiling=ceiling, heard=heard
                )
            except (OSError, RuntimeError) as error:
                self._put_off(_store_full(error))

    def received(self) -> int | None:
        stream = self._running_stream()
        return None if stream is None else stream.received()

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
            # Part of it was returned already: the next call uses peeks.
            failure = _store_full(error)
            self._give_up(stream, failure)
            raise failure from error

    def acknowledge(self, position: int) -> None:
        stream = self._running_stream()
        if stream is None:
            self._peeked.acknowledge(position)
        else:
            stream.acknowledge(position)

    def close(self) -> None:
        """End the stream; the server releases the slot a moment later."""
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.close()

    def release(self) -> None:
        """End the stream, and wait until the server has released the slot."""
        stream = self.stream
        self.close()
        if stream is not None and stream.pid is not None:
            _free(self._peeked.database, self._peeked.slot, stream.pid)

    def _at(self, upto: int) -> Stream | None:
        """Return the stream once it has received all up to a position; None without a stream."""
        stream = self._running_stream()
        if stream is None:
            return None
        if not stream.wait(upto, NUDGE_SECONDS):
            if stream.failure is None:
                # The position may lie inside a WAL record.
                flush(self._peeked.database)
            if not stream.wait(upto, SILENCE_SECONDS):
                self._give_up(stream)
                return None
        return stream

    def _running_stream(self) -> Stream | None:
        """Return the stream if it runs; a failed one is ended."""
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
        silent = Transient("slot-busy", "the server sends no data")
        self._put_off(error or stream.failure or silent)
        with suppress(HeadraceError):
            self.release()

    def _put_off(self, error: HeadraceError) -> None:
        """Start no stream for a while, and log the reason."""
        reason = _described(error)
        if reason != self.reason:
            logger.warning("could not stream the WAL", extra={"code": error.code, "error": reason})
        pause = min(AGAIN_SECONDS * 2**self._failures, LONGEST_SECONDS)
        self.reason, self._failures = reason, min(self._failures + 1, 10)
        self._not_before = time.monotonic() + pause


def _store_full(error: Exception) -> Unavailable:
    return Unavailable("store-full", f"could not store the stream: {error}")


def _described(error: HeadraceError) -> str:
    return error.message if error.detail is None else f"{error.message}: {error.detail}"


def _free(database: Database, slot: str, pid: int) -> None:
    """Wait until the server process of an ended session has released the slot."""
    patient_until = time.monotonic() + FREE_SECONDS
    with database.session() as connection:
        while (status := read_status(connection, slot)) is not None and status.active_pid == pid:
            if time.monotonic() > patient_until:
                milliseconds = int(FREE_SECONDS * 1000)
                with translated():
                    connection.execute("SELECT pg_terminate_backend(%s, %s)", (pid, milliseconds))
                return
            time.sleep(PAUSE_SECONDS)


class SlotReaders:
    """The readers of a process by slot: peeking, except those that `stream` was called for.

    Call `release` before a slot is dropped.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streamed: dict[str, StreamingReader] = {}

    def of(self, database: Database, slot: str) -> SlotReader:
        """Return the reader of a slot of a database."""
        with self._lock:
            return self._streaming(database, slot) or PeekingReader(database, slot, PUBLICATION)

    def stream(
        self,
        database: Database,
        slot: str,
        ceiling: int,
        heard: Callable[[], None] = ignore_changes,
        tables: frozenset[Entry] = frozenset(),
    ) -> StreamingReader:
        """Stream a slot from now on; call it repeatedly, since each call restarts an ended stream.

        `tables` are the publication's entries that are read from the WAL.
        """
        with self._lock:
            reader = self._streaming(database, slot)
            if reader is None:
                reader = StreamingReader(PeekingReader(database, slot, PUBLICATION))
                self._streamed[slot] = reader
        reader.keep(ceiling, heard, tables)
        return reader

    def _streaming(self, database: Database, slot: str) -> StreamingReader | None:
        """Return the streaming reader of a slot; end one whose database has another address now."""
        reader = self._streamed.get(slot)
        if reader is None or reader.database is database:
            return reader
        del self._streamed[slot]
        reader.close()
        return None

    def release(self, slot: str) -> None:
        """Stop streaming a slot, and wait until the server has released it."""
        with self._lock:
            reader = self._streamed.pop(slot, None)
        if reader is not None:
            reader.release()

    def close(self, slot: str | None = None) -> None:
        """Stop streaming a slot, or all, without waiting for the server."""
        with self._lock:
            slots = list(self._streamed) if slot is None else [slot]
            readers = [self._streamed.pop(name) for name in slots if name in self._streamed]
        for reader in readers:
            reader.close()
