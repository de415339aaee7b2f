"""Rows and footers of files kept in memory, and tables mapped from files without a name."""

from __future__ import annotations

import ctypes
import mmap
import tempfile
from collections import OrderedDict
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

import pyarrow as pa
from pyarrow import ipc

Kept = TypeVar("Kept")


class Recent(Generic[Kept]):
    """Values by file address, the oldest evicted when together they exceed `limit` bytes.

    Files never change and their names are never reused, so an entry stays right for as long as the
    log names its file, whatever rollbacks and other writers do.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[Kept, int]] = OrderedDict()
        self._lock = Lock()

    def put(self, uri: str, value: Kept, size: int) -> None:
        """Keep a value for a file, unless it alone exceeds the limit."""
        if size > self._limit:
            return
        with self._lock:
            self._bytes += size - self._kept.pop(uri, (None, 0))[1]
            self._kept[uri] = (value, size)
            while self._bytes > self._limit:
                _, (_, freed) = self._kept.popitem(last=False)
                self._bytes -= freed

    def get(self, uri: str) -> Kept | None:
        """Return the value kept for a file; None if it was evicted."""
        entry = self._kept.get(uri)
        return entry[0] if entry else None

    def forget(self, prefix: str) -> None:
        """Forget every file whose address starts with `prefix`."""
        with self._lock:
            for uri in [uri for uri in self._kept if uri.startswith(prefix)]:
                self._bytes -= self._kept.pop(uri)[1]


def mapped(table: pa.Table, folder: Path | None) -> pa.Table:
    """Return the table as one chunk, mapped from a nameless file in the folder.

    The operating system pages the file in and out, and removes it with its last user.
    """
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    with tempfile.TemporaryFile(dir=folder) as file:
        with ipc.new_file(file, table.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        file.flush()
        pages = _Pages(file.fileno(), file.tell())
    buffer = pa.foreign_buffer(pages.address, pages.size, pages)
    return ipc.open_file(buffer).read_all()


class _Pages:
    """A mapping of a whole file. Python's `mmap` would keep a descriptor open for each."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size
        address = _system().mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            self.size = 0
            raise OSError(ctypes.get_errno(), "could not map a temporary file")
        self.address: int = address

    def __del__(self) -> None:
        if self.size:
            _system().munmap(self.address, self.size)


@cache
def _system() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    number, size, pointer = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
    library.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_int64]
    library.mmap.restype = pointer
    library.munmap.argtypes = [pointer, size]
    return library
