"""A folder for what is read and not yet durable; those that dead processes left are removed.

Whoever uses a folder holds a lock on it, which the system lets go of with the process. Numbers of
processes would not do: containers that share a disk give them out twice.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "headrace-log-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """An empty folder for the time of a `with`."""
    remove_abandoned()
    folder, lock = _locked()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_abandoned() -> None:
    """Remove the folders that nobody uses any more and that we may remove."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(lock)


def _locked() -> tuple[Path, int]:
    """A new folder and the lock on it; one that was taken for abandoned before is not used."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            # On a disk that knows no locks nobody takes it for abandoned, either.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)
