"""Bytes that do not fit into memory, in nameless files that vanish with the process."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from typing import IO

# A file is freed as a whole, when none of its bytes are needed any more.
FILE_BYTES = 256 * 1024 * 1024


def _unnamed() -> IO[bytes]:
    return tempfile.TemporaryFile(buffering=0)


@dataclass(eq=False)
class _File:
    handle: IO[bytes] = field(default_factory=_unnamed)
    size: int = 0
    used: int = 0


@dataclass(frozen=True, eq=False)
class SpilledBytes:
    """The position of some bytes."""

    file: _File
    start: int
    length: int


class Spill:
    """Files written at their end and read anywhere. Raises OSError if the disk is full.

    Reading is safe while another thread writes.
    """

    def __init__(self, file_bytes: int = FILE_BYTES) -> None:
        self._file_bytes = file_bytes
        self._files: list[_File] = []

    @property
    def files(self) -> int:
        return len(self._files)

    def write(self, data: bytes) -> SpilledBytes:
        if not self._files or self._files[-1].size >= self._file_bytes:
            self._files.append(_File())
        file = self._files[-1]
        left = memoryview(data)
        while left:
            left = left[os.pwrite(file.handle.fileno(), left, file.size + len(data) - len(left)) :]
        place = SpilledBytes(file, file.size, len(data))
        file.size += len(data)
        file.used += 1
        return place

    def read(self, place: SpilledBytes) -> bytes:
        parts, done = [], 0
        while done < place.length:
            part = os.pread(place.file.handle.fileno(), place.length - done, place.start + done)
            if not part:
                raise OSError("unexpected end of a temporary file")
            parts.append(part)
            done += len(part)
        return b"".join(parts)

    def free(self, place: SpilledBytes) -> None:
        """Free some bytes, and their file with its last bytes."""
        place.file.used -= 1
        if not place.file.used:
            self._files.remove(place.file)
            place.file.handle.close()

    def close(self) -> None:
        for file in self._files:
            file.handle.close()
        self._files.clear()
