"""Temporary folders; those of dead processes are removed when the next folder is made.

A process holds a lock on each of its folders, which the system releases when the process ends.
Process ids would not do: containers that share a disk use the same ones.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Prefixes: changes read from the WAL and not yet durable; files of a JVM; the project of a demo.
LOG, JVM, DEMO = "headrace-log-", "headrace-jvm-", "headrace-demo-"


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make an empty folder for the duration of a `with`."""
    folder, lock = lasting_folder(prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def lasting_folder(prefix: str) -> tuple[Path, int]:
    """Return a new empty private folder, and its lock: closing the lock abandons the folder.

    A folder that another process removed as abandoned before it was locked is not used.
    """
    remove_abandoned(prefix)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            # On a file system without locks no process treats the folder as abandoned, either.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def remove_abandoned(prefix: str) -> None:
    """Remove the folders of this user that no process uses any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(lock)
