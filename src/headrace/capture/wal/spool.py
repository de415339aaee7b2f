"""The spool of a stream: messages received and not yet released by a durable cut.

Readers get whole transactions, in the order of the slot, any number of times. A server describes a
relation once in each session, before its first change: descriptions outlive the transactions that
they came with, and readers get them first.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from headrace.capture.wal.protocol import (
    BEGIN,
    COMMIT,
    RELATION,
    begin_of,
    end_of,
    not_decodable,
    oid_of,
    xid_of,
)
from headrace.capture.wal.spill import Spill, SpilledBytes
from headrace.capture.wal.visibility import Committed

BOUNDARIES = frozenset({BEGIN, COMMIT, RELATION})
SEGMENT_BYTES = 8 * 1024 * 1024
MEMORY_BYTES = 64 * 1024 * 1024


class _Whole:
    """Complete transactions in order: a few bytes each, there may be millions.

    The messages of each are those from number `first` up to the first of the next, or `after`.
    """

    def __init__(self) -> None:
        self.xid = array("I")
        self.begin = array("Q")
        self.end = array("Q")
        self.first = array("Q")
        self.after = 0

    def __len__(self) -> int:
        return len(self.xid)

    def add(self, xid: int, begin: int, end: int, first: int, after: int) -> None:
        self.xid.append(xid)
        self.begin.append(begin)
        self.end.append(end)
        self.first.append(first)
        self.after = after

    def upto(self, position: int) -> int:
        """Return how many commits begin before a position: a slot at that position skips them.

        A commit across the position counts, as in a peek, or it would be released unread.
        """
        return bisect_left(self.begin, position)

    def ended(self, position: int) -> int:
        """Return how many transactions end at or before a position."""
        return bisect_right(self.end, position)

    def after_of(self, index: int) -> int:
        """Return the number of the message after those of a transaction."""
        return self.first[index + 1] if index + 1 < len(self) else self.after

    def forget(self, count: int) -> None:
        """Remove the first transactions."""
        for numbers in (self.xid, self.begin, self.end, self.first):
            del numbers[:count]


@dataclass(frozen=True, eq=False)
class _Segment:
    """Messages from number `first` on, in memory or on disk."""

    first: int
    count: int
    size: int
    messages: pa.Array | tuple[SpilledBytes, SpilledBytes]

    @property
    def after(self) -> int:
        return self.first + self.count


class Spool:
    """Messages in segments, written by one thread and read by others.

    Beyond `memory_bytes`, segments go to disk; the last one stays in memory in addition.
    """

    def __init__(
        self, *, segment_bytes: int = SEGMENT_BYTES, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self._segment_bytes = segment_bytes
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._spill = Spill()
        self._segments: deque[_Segment] = deque()
        self._whole = _Whole()
        self._begun: tuple[int, int] | None = None
        self._descriptions: deque[tuple[int, int, bytes]] = deque()
        self._described: dict[int, bytes] = {}
        self._trimmed = 0
        self._number = 0
        self._data = bytearray()
        self._ends = array("i", [0])
        self.in_memory = 0
        self.on_disk = 0

    @property
    def size(self) -> int:
        return self.in_memory + self.on_disk + len(self._data)

    def extend(self, messages: Iterable[bytes]) -> int:
        """Add messages; return the end of the last transaction that they complete, or 0.

        Raises OSError if the disk is full, and `wal-not-decodable`.
        """
        ended = 0
        with self._lock:
            for message in messages:
                letter = message[0]
                if letter in BOUNDARIES:
                    ended = self._note(letter, message) or ended
                self._data += message
                self._ends.append(len(self._data))
                self._number += 1
                if len(self._data) >= self._segment_bytes:
                    self._seal()
            if ended and self._whole.end[0] <= self._trimmed:
                self._trim(self._trimmed)
        return ended

    def _note(self, letter: int, message: bytes) -> int:
        """Record the begin or end of a transaction, or the description of a table."""
        if letter == BEGIN:
            self._begun = xid_of(message), self._number
        elif letter == RELATION:
            self._descriptions.append((self._number, oid_of(message), message))
        elif self._begun is None:
            raise not_decodable("A transaction ends without a begin.")
        else:
            (xid, first), end = self._begun, end_of(message)
            self._whole.add(xid, begin_of(message), end, first, self._number + 1)
            self._begun = None
            return end
        return 0

    def transactions(self, upto: int, limit: int | None = None) -> tuple[Committed, ...]:
        """Return the transactions of `messages`, in its order; at most `limit`."""
        with self._lock:
            count = self._whole.upto(upto)
            selected = slice(count if limit is None else min(count, limit))
            return tuple(map(Committed, self._whole.xid[selected], self._whole.end[selected]))

    def messages(self, upto: int) -> Iterator[pa.Array]:
        """Yield the messages of transactions whose commit begins before a position, in batches."""
        with self._lock:
            count = self._whole.upto(upto)
            if not count:
                return
            first, after = self._whole.first[0], self._whole.after_of(count - 1)
            described = list(self._described.values())
            segments = [s for s in self._segments if s.first < after and first < s.after]
            if after > self._number - (len(self._ends) - 1):
                segments.append(self._copy_of_tail())
        if described:
            yield pa.array(described, pa.binary())
        for segment in segments:
            start = max(first - segment.first, 0)
            end = min(after, segment.after) - segment.first
            yield self._read(segment).slice(start, end - start)

    def trim(self, position: int) -> None:
        """Release transactions that end at or before a position, also those yet to arrive."""
        with self._lock:
            self._trim(position)

    def close(self) -> None:
        self._spill.close()

    def _trim(self, position: int) -> None:
        self._trimmed = max(self._trimmed, position)
        self._whole.forget(self._whole.ended(position))
        needed = self._number
        if self._whole:
            needed = self._whole.first[0]
        elif self._begun is not None:
            needed = self._begun[1]
        while self._descriptions and self._descriptions[0][0] < needed:
            _, oid, message = self._descriptions.popleft()
            self._described[oid] = message
        while self._segments and self._segments[0].after <= needed:
            self._forget(self._segments.popleft())
        if needed == self._number:
            self._empty_tail()

    def _empty_tail(self) -> None:
        self._data, self._ends = bytearray(), array("i", [0])

    def _copy_of_tail(self) -> _Segment:
        count = len(self._ends) - 1
        messages = _array(count, bytes(self._ends), bytes(self._data))
        return _Segment(self._number - count, count, len(self._data), messages)

    def _seal(self) -> None:
        """Make a segment of the last messages; on disk if the memory is used up."""
        count, size = len(self._ends) - 1, len(self._data)
        first = self._number - count
        if self.in_memory + size <= self._memory_bytes:
            messages = _array(count, self._ends, self._data)
            self._segments.append(_Segment(first, count, size, messages))
            self.in_memory += size
        else:
            places = self._spill.write(bytes(self._ends)), self._spill.write(bytes(self._data))
            self._segments.append(_Segment(first, count, size, places))
            self.on_disk += size
        self._empty_tail()

    def _read(self, segment: _Segment) -> pa.Array:
        if isinstance(segment.messages, pa.Array):
            return segment.messages
        ends, data = (self._spill.read(place) for place in segment.messages)
        return _array(segment.count, ends, data)

    def _forget(self, segment: _Segment) -> None:
        if isinstance(segment.messages, pa.Array):
            self.in_memory -= segment.size
            return
        for place in segment.messages:
            self._spill.free(place)
        self.on_disk -= segment.size


def _array(count: int, ends: bytes | array[int], data: bytes | bytearray) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(data)])
