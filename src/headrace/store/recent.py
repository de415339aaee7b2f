"""The newest rows in memory, so that a small change is not read back from disk."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import pyarrow as pa


class Recent:
    """Tables by file address, the oldest given up when together they exceed `limit` bytes.

    Files never change and their names are never used again, so an entry is right for as long as
    the log names its file: rollback and other writers need not be told apart here.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._tables: OrderedDict[str, tuple[pa.Table, int]] = OrderedDict()
        self._lock = Lock()

    def put(self, uri: str, rows: pa.Table) -> None:
        """Keep the rows of a file, unless they alone exceed the limit."""
        size = rows.get_total_buffer_size()
        if size > self._limit:
            return
        with self._lock:
            self._tables[uri] = (rows, size)
            self._bytes += size
            while self._bytes > self._limit:
                _, (_, freed) = self._tables.popitem(last=False)
                self._bytes -= freed

    def get(self, uri: str) -> pa.Table | None:
        """The rows of a file, if they are still here."""
        entry = self._tables.get(uri)
        return entry[0] if entry else None

    def forget(self, prefix: str) -> None:
        """Give up every file whose address starts with `prefix`."""
        with self._lock:
            for uri in [uri for uri in self._tables if uri.startswith(prefix)]:
                self._bytes -= self._tables.pop(uri)[1]
