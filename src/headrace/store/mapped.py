"""Tables in files without a name, mapped into memory: gone when nobody has them any more."""

from __future__ import annotations

import ctypes
import mmap
import tempfile
from functools import cache
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc


def mapped(table: pa.Table, folder: Path | None) -> pa.Table:
    """A table of one chunk, in a file in the folder that the operating system pages in and out."""
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
    """A mapping of a whole file. Python's own would keep a descriptor open, one for each."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size
        found = _system().mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if found in (None, ctypes.c_void_p(-1).value):
            self.size = 0
            raise OSError(ctypes.get_errno(), "a file could not be mapped")
        self.address: int = found

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
