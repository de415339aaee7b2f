"""File locks, which the kernel releases when their holder dies, however it dies.

Three files in `<home>/pg` show who uses the embedded server:

    open.lock      exclusive   a process is opening or closing the server
    holders.lock   shared      one lock for every open `EmbeddedServer`, in any process
    server.lock    exclusive   inherited by the server's processes: held while one of them lives

Locks are taken in this order. The last holder is the one that can turn its shared lock on
`holders.lock` into an exclusive one. Process ids are not compared, so neither `kill -9` nor the
reuse of a process id does any harm.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FileLock:
    """One open file description that can hold a lock on `path`, shared or exclusive.

    Two `FileLock`s on one path exclude each other even within a process. Children started with
    `exec` do not inherit it unless they are given `descriptor`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def share(self) -> None:
        """Wait for a shared lock."""
        fcntl.flock(self.descriptor, fcntl.LOCK_SH)

    def take(self) -> None:
        """Wait for an exclusive lock."""
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)

    def try_share(self) -> bool:
        """Take a shared lock without waiting; return whether it is held."""
        return self._try(fcntl.LOCK_SH)

    def try_take(self) -> bool:
        """Take an exclusive lock without waiting; return whether it is held."""
        return self._try(fcntl.LOCK_EX)

    def release(self) -> None:
        """Release the lock, for every process that inherited this descriptor too."""
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close this process's copy; a lock shared with a child stays with the child."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _try(self, operation: int) -> bool:
        try:
            fcntl.flock(self.descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path` inside a `with`."""
    lock = FileLock(path)
    try:
        lock.take()
        yield
    finally:
        lock.close()


def is_held(path: Path) -> bool:
    """Return whether any process holds a lock on `path`."""
    lock = FileLock(path)
    try:
        return not lock.try_take()
    finally:
        lock.close()
