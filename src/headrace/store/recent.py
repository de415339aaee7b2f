"""What was read or written last in memory, so that it is not read from disk again."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


class Recent(Generic[Kept]):
    """Values by file address, the oldest given up when together they exceed `limit` bytes.

    Files never change and their names are never used again, so an entry is right for as long as
    the log names its file: rollback and other writers need not be told apart here.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[Kept, int]] = OrderedDict()
        self._lock = Lock()

    def put(self, uri: str, value: Kept, size: int) -> None:
        """Keep something of a file, unless it alone exceeds the limit."""
        if size > self._limit:
            return
        with self._lock:
            self._bytes += size - self._kept.pop(uri, (None, 0))[1]
            self._kept[uri] = (value, size)
            while self._bytes > self._limit:
                _, (_, freed) = self._kept.popitem(last=False)
                self._bytes -= freed

    def get(self, uri: str) -> Kept | None:
        """What was kept of a file, if it is still here."""
        entry = self._kept.get(uri)
        return entry[0] if entry else None

    def forget(self, prefix: str) -> None:
        """Give up every file whose address starts with `prefix`."""
        with self._lock:
            for uri in [uri for uri in self._kept if uri.startswith(prefix)]:
                self._bytes -= self._kept.pop(uri)[1]
