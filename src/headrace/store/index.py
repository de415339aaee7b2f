"""Indexes of large files by a column of integers, kept beside the files.

For a file that is looked up repeatedly, an index keeps the requested columns in their form in
memory, and the positions of the rows in the order of the key's column: the cost of a lookup then
depends on the number of keys, not on the size of the file. Indexes are nameless files that the
operating system maps, pages in and out, and removes with the process. They are built in the
background, and nothing depends on them: without an index the file itself is read.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread, main_thread

import numpy as np
import pyarrow as pa

from headrace.store.cache import mapped
from headrace.store.keys import Keys, Numbers
from headrace.store.log import LogFile

# Reading a smaller file is faster than indexing it.
FEWEST_ROWS = 20_000
# Lookups of a file before it is indexed: after the first one there may be no second.
WORTH_TIMES = 2
MOST_BYTES = 4 << 30
# Indexes take at most this fraction (1/n) of the free disk space.
PART_OF_FREE = 4
# If space is short, indexes that were not used for this long are evicted.
UNUSED_SECONDS = 600.0
# Pause before a failed build is retried.
PAUSE_SECONDS = 600.0
MOST_COUNTED = 10_000

ORDER = ("value", "place")

Piece = tuple[str, str, str]
"""A file's address, the kind of piece ("column" or "order"), and the column's name."""
Read = Callable[[str, Collection[str]], pa.Table]

logger = logging.getLogger(__name__)


@dataclass
class _MappedPiece:
    """A piece as a mapped table, its size in bytes, and the time of its last use."""

    table: pa.Table
    size: int
    used: float


@dataclass
class Indexes:
    """Indexes of files, built on request; safe for any number of threads.

    `read` returns columns of a file. `folder` takes the bytes; None is the folder of temporary
    files.
    """

    read: Read
    folder: Path | None = None
    most_bytes: int = MOST_BYTES
    _kept: dict[Piece, _MappedPiece] = field(default_factory=dict)
    _lookups: Counter[tuple[str, str]] = field(default_factory=Counter)
    _not_before: dict[Piece, float] = field(default_factory=dict)
    _due: deque[Piece] = field(default_factory=deque)
    _building: Piece | None = None
    _lock: Lock = field(default_factory=Lock)
    _builder: Thread | None = None

    def compared_rows(self, file: LogFile, keys: Keys, columns: Collection[str]) -> int | None:
        """Return how many rows a lookup in the file compares; None without an index for it."""
        name = _leading(keys)
        if name is None or any((file.uri, "column", each) not in self._kept for each in columns):
            return None
        order = self._kept.get((file.uri, "order", name))
        if order is None:
            return None
        first, end = _spans(order.table, keys.integers[name])
        return int((end - first).sum())

    def find(
        self, file: LogFile, keys: Keys, schema: pa.Schema, most: int | None = None
    ) -> pa.Table | None:
        """Return the file's rows whose key is in the set; None without an index.

        `schema` has the columns to return, those of the key among them. A result of more than
        `most` rows is incomplete.
        """
        name = _leading(keys)
        order = None if name is None else self._use((file.uri, "order", name))
        columns = [self._use((file.uri, "column", each)) for each in schema.names]
        if name is None or order is None:
            return None
        first, end = _spans(order, keys.integers[name])
        places = order["place"].chunk(0).to_numpy()[_within(first, end)]
        if most is not None and len(places) > most:
            if len(keys.names) > 1:
                return None
            places = places[: most + 1]
        at = pa.array(np.sort(places))
        arrays = [table.column(0).chunk(0).take(at) for table in columns if table is not None]
        if len(arrays) < len(columns):
            return None
        rows = pa.table(arrays, names=schema.names).cast(schema)
        return keys.matching(rows) if len(keys.names) > 1 else rows

    def request(self, file: LogFile, keys: Keys, columns: Collection[str]) -> None:
        """Count a lookup of a file; after a few, index the file in the background."""
        name = _leading(keys)
        if name is None or file.rows < FEWEST_ROWS:
            return
        with self._lock:
            for record in (self._lookups, self._not_before):
                if len(record) > MOST_COUNTED:
                    record.clear()
            self._lookups[file.uri, name] += 1
            if self._lookups[file.uri, name] < WORTH_TIMES:
                return
            now = time.monotonic()
            self._due.extend(
                piece
                for piece in self._missing(file, keys, columns)
                if piece not in self._due and self._not_before.get(piece, 0.0) <= now
            )
            if self._due and self._builder is None:
                builder = Thread(target=self._build, name="headrace-index", daemon=False)
                try:
                    builder.start()
                except RuntimeError:
                    # The process has too many threads, or is about to end.
                    self._due.clear()
                else:
                    self._builder = builder

    def make(self, file: LogFile, keys: Keys, columns: Collection[str]) -> None:
        """Index a file now, if possible."""
        for piece in self._missing(file, keys, columns):
            mapped_piece = self._map_piece(piece)
            if mapped_piece is not None:
                with self._lock:
                    self._kept[piece] = mapped_piece

    def forget(self, files: Iterable[LogFile] = (), prefix: str | None = None) -> None:
        """Drop the indexes of these files, and of all whose address starts with `prefix`."""
        gone = {file.uri for file in files}

        def is_gone(piece: Piece) -> bool:
            return piece[0] in gone or (prefix is not None and piece[0].startswith(prefix))

        with self._lock:
            for piece in filter(is_gone, [*self._kept]):
                del self._kept[piece]
            self._due = deque(piece for piece in self._due if not is_gone(piece))
            if self._building is not None and is_gone(self._building):
                self._building = None

    def _use(self, piece: Piece) -> pa.Table | None:
        mapped_piece = self._kept.get(piece)
        if mapped_piece is None:
            return None
        mapped_piece.used = time.monotonic()
        return mapped_piece.table

    def _missing(self, file: LogFile, keys: Keys, columns: Collection[str]) -> list[Piece]:
        name = _leading(keys)
        if name is None:
            return []
        pieces: list[Piece] = [(file.uri, "column", each) for each in columns]
        pieces.append((file.uri, "order", name))
        return [piece for piece in pieces if piece not in self._kept]

    def _build(self) -> None:
        """Build the requested pieces until none is left or the process ends."""
        while True:
            with self._lock:
                if not self._due or not main_thread().is_alive():
                    self._due.clear()
                    self._builder = None
                    return
                piece = self._building = self._due.popleft()
            mapped_piece = self._map_piece(piece)
            with self._lock:
                # `forget` may have dropped the piece meanwhile.
                if mapped_piece is not None and self._building == piece:
                    self._kept[piece] = mapped_piece
                self._building = None

    def _map_piece(self, piece: Piece) -> _MappedPiece | None:
        """Build a piece; return None if there is no room or the build fails.

        A failure is only logged, since the rows can be read without an index. The file may be gone
        by now, the disk full, or the memory too small.
        """
        uri, kind, name = piece
        try:
            table = self.read(uri, (name,)).select((name,)).combine_chunks()
            if kind == "order":
                table = _ordered(table[name])
            # Text beyond two gigabytes has several chunks.
            if table.column(0).num_chunks <= 1 and self._make_room(table.nbytes):
                return _MappedPiece(mapped(table, self.folder), table.nbytes, time.monotonic())
        except Exception as error:  # noqa: BLE001  a lookup works without an index
            logger.info(
                "could not index file", extra={"file": uri, "column": name, "error": str(error)}
            )
        with self._lock:
            self._not_before[piece] = time.monotonic() + PAUSE_SECONDS
        return None

    def _make_room(self, size: int) -> bool:
        free = shutil.disk_usage(self.folder or tempfile.gettempdir()).free
        with self._lock:
            taken = sum(mapped_piece.size for mapped_piece in self._kept.values())
            room = min(self.most_bytes, (free + taken) // PART_OF_FREE) - taken
            due, latest = [], time.monotonic() - UNUSED_SECONDS
            for piece in sorted(self._kept, key=lambda piece: self._kept[piece].used):
                if size <= room or self._kept[piece].used > latest:
                    break
                room += self._kept[piece].size
                due.append(piece)
            if size > room:
                return False
            for piece in due:
                del self._kept[piece]
        return True


def _leading(keys: Keys) -> str | None:
    """Return the column of the key that rows are found by: the one with most values."""
    return max(keys.integers, key=lambda name: len(keys.integers[name]), default=None)


def _ordered(column: pa.ChunkedArray) -> pa.Table:
    """Return a column's values in order with their positions in the file, without NULLs."""
    places = np.flatnonzero(column.is_valid().to_numpy()).astype(np.int32)
    values = column.drop_null().to_numpy().astype(np.int64)
    order = np.argsort(values, kind="stable")
    return pa.table([values[order], places[order]], names=ORDER)


def _spans(order: pa.Table, key_values: Numbers) -> tuple[Numbers, Numbers]:
    """Return where in the order each of the sorted key values begins and ends."""
    values = order["value"].chunk(0).to_numpy()
    first = np.searchsorted(values, key_values)
    return first, np.searchsorted(values, key_values, side="right")


def _within(first: Numbers, end: Numbers) -> Numbers:
    """Return all numbers from each first to before its end."""
    counts = end - first
    before = np.cumsum(counts) - counts
    within: Numbers = np.arange(counts.sum()) + np.repeat(first - before, counts)
    return within
