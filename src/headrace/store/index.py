"""The rows of large files by a column of whole numbers, beside the files and faster than these.

Of a file that is looked up again and again, the columns that were asked for are kept as they are in
memory, and the places of its rows in the order of the key's column: a look-up then costs with its
keys, however many rows the file has. All of that is in nameless files that the operating system
maps, pages in and out, and removes with the process. It is made in the background, and nothing
depends on it: what is not there is read from the file itself.
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

from headrace.store.keys import Keys, Numbers
from headrace.store.log import LogFile
from headrace.store.mapped import mapped

# Smaller files are read sooner than they are indexed.
FEWEST_ROWS = 20_000
# Looked up once, a file may never be again.
WORTH_TIMES = 2
MOST_BYTES = 4 << 30
# Of what the disk has beside other files, no more than one part of so many is taken.
PART_OF_FREE = 4
# Where space is short, what was not used for so long makes room.
UNUSED_SECONDS = 600.0
# What could not be made is not tried again for so long.
PAUSE_SECONDS = 600.0
MOST_ASKED = 10_000

ORDER = ("value", "place")

Piece = tuple[str, str, str]
"""A file's address, what of it ("column" or "order"), and the column's name."""
Read = Callable[[str, Collection[str]], pa.Table]

logger = logging.getLogger(__name__)


@dataclass
class _Kept:
    """A piece as a mapped table, its bytes, and when it was used last."""

    table: pa.Table
    size: int
    used: float


@dataclass
class Indexes:
    """Indexes of files, made as they are asked for; used by any number of threads.

    `read` gives columns of a file. `folder` is where the bytes go; without one, where temporary
    files do.
    """

    read: Read
    folder: Path | None = None
    most_bytes: int = MOST_BYTES
    _kept: dict[Piece, _Kept] = field(default_factory=dict)
    _asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    _not_before: dict[Piece, float] = field(default_factory=dict)
    _due: deque[Piece] = field(default_factory=deque)
    _making: Piece | None = None
    _lock: Lock = field(default_factory=Lock)
    _builder: Thread | None = None

    def reach(self, file: LogFile, keys: Keys, columns: Collection[str]) -> int | None:
        """How many rows a look-up of the file compares; None without an index for it."""
        name = _leading(keys)
        if name is None or any((file.uri, "column", one) not in self._kept for one in columns):
            return None
        order = self._kept.get((file.uri, "order", name))
        if order is None:
            return None
        first, end = _spans(order.table, keys.integers[name])
        return int((end - first).sum())

    def find(
        self, file: LogFile, keys: Keys, wanted: pa.Schema, most: int | None = None
    ) -> pa.Table | None:
        """The file's rows, of the wanted columns, whose key is in the set; None without an index.

        The columns of the key are among the wanted. More than `most` rows are not all.
        """
        name = _leading(keys)
        order = None if name is None else self._use((file.uri, "order", name))
        columns = [self._use((file.uri, "column", one)) for one in wanted.names]
        if name is None or order is None:
            return None
        first, end = _spans(order, keys.integers[name])
        places = order["place"].chunk(0).to_numpy()[_within(first, end)]
        if most is not None and len(places) > most:
            if len(keys.names) > 1:
                return None
            places = places[: most + 1]
        at = pa.array(np.sort(places))
        found = [one.column(0).chunk(0).take(at) for one in columns if one is not None]
        if len(found) < len(columns):
            return None
        rows = pa.table(found, names=wanted.names).cast(wanted)
        return keys.matching(rows) if len(keys.names) > 1 else rows

    def want(self, file: LogFile, keys: Keys, columns: Collection[str]) -> None:
        """Someone looks up a file: after a few times it is indexed, in the background."""
        name = _leading(keys)
        if name is None or file.rows < FEWEST_ROWS:
            return
        with self._lock:
            for noted in (self._asked, self._not_before):
                if len(noted) > MOST_ASKED:
                    noted.clear()
            self._asked[file.uri, name] += 1
            if self._asked[file.uri, name] < WORTH_TIMES:
                return
            now = time.monotonic()
            self._due.extend(
                one
                for one in self._missing(file, keys, columns)
                if one not in self._due and self._not_before.get(one, 0.0) <= now
            )
            if self._due and self._builder is None:
                builder = Thread(target=self._build, name="headrace-index", daemon=False)
                try:
                    builder.start()
                except RuntimeError:
                    # The process has too many threads, or ends.
                    self._due.clear()
                else:
                    self._builder = builder

    def make(self, file: LogFile, keys: Keys, columns: Collection[str]) -> None:
        """Index a file now, if it can be."""
        for piece in self._missing(file, keys, columns):
            table = self._made(piece)
            if table is not None:
                with self._lock:
                    self._kept[piece] = table

    def forget(self, files: Iterable[LogFile] = (), prefix: str | None = None) -> None:
        """Give up these files, and all whose address starts with `prefix`."""
        gone = {file.uri for file in files}

        def is_gone(piece: Piece) -> bool:
            return piece[0] in gone or (prefix is not None and piece[0].startswith(prefix))

        with self._lock:
            for piece in filter(is_gone, [*self._kept]):
                del self._kept[piece]
            self._due = deque(piece for piece in self._due if not is_gone(piece))
            if self._making is not None and is_gone(self._making):
                self._making = None

    def _use(self, piece: Piece) -> pa.Table | None:
        kept = self._kept.get(piece)
        if kept is None:
            return None
        kept.used = time.monotonic()
        return kept.table

    def _missing(self, file: LogFile, keys: Keys, columns: Collection[str]) -> list[Piece]:
        name = _leading(keys)
        if name is None:
            return []
        pieces: list[Piece] = [(file.uri, "column", one) for one in columns]
        return [one for one in (*pieces, (file.uri, "order", name)) if one not in self._kept]

    def _build(self) -> None:
        """Make what is due, until there is nothing more or the process wants to end."""
        while True:
            with self._lock:
                if not self._due or not main_thread().is_alive():
                    self._due.clear()
                    self._builder = None
                    return
                piece = self._making = self._due.popleft()
            kept = self._made(piece)
            with self._lock:
                # Forgotten meanwhile, it is not wanted any more.
                if kept is not None and self._making == piece:
                    self._kept[piece] = kept
                self._making = None

    def _made(self, piece: Piece) -> _Kept | None:
        """A piece, if there is room for it.

        Whatever fails is left alone: there are other ways to the rows. The file may be gone by
        now, the disk full, or the memory too small.
        """
        uri, what, name = piece
        try:
            table = self.read(uri, (name,)).select((name,)).combine_chunks()
            if what == "order":
                table = _ordered(table[name])
            # Text beyond two gigabytes does not come in one chunk.
            if table.column(0).num_chunks <= 1 and self._make_room(table.nbytes):
                return _Kept(mapped(table, self.folder), table.nbytes, time.monotonic())
        except Exception as error:  # noqa: BLE001  an index that is missing must stop nobody
            logger.info("not indexed", extra={"file": uri, "column": name, "error": str(error)})
        with self._lock:
            self._not_before[piece] = time.monotonic() + PAUSE_SECONDS
        return None

    def _make_room(self, size: int) -> bool:
        free = shutil.disk_usage(self.folder or tempfile.gettempdir()).free
        with self._lock:
            taken = sum(kept.size for kept in self._kept.values())
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
    """The column of the key that rows are found by: that with most values."""
    return max(keys.integers, key=lambda name: len(keys.integers[name]), default=None)


def _ordered(column: pa.ChunkedArray) -> pa.Table:
    """A column's values in order, and the place in the file of each; NULLs left out."""
    places = np.flatnonzero(column.is_valid().to_numpy()).astype(np.int32)
    values = column.drop_null().to_numpy().astype(np.int64)
    order = np.argsort(values, kind="stable")
    return pa.table([values[order], places[order]], names=ORDER)


def _spans(order: pa.Table, wanted: Numbers) -> tuple[Numbers, Numbers]:
    """Where in the order each of the wanted values, which are in order, begins and ends."""
    values = order["value"].chunk(0).to_numpy()
    return np.searchsorted(values, wanted), np.searchsorted(values, wanted, side="right")


def _within(first: Numbers, end: Numbers) -> Numbers:
    """All numbers from each first to before its end."""
    counts = end - first
    before = np.cumsum(counts) - counts
    within: Numbers = np.arange(counts.sum()) + np.repeat(first - before, counts)
    return within
