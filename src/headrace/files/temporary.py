"""Temporary folders; those that dead processes left are removed when the next one is made.

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

# What is read from the server's log and not yet durable; what a JVM drops; a demo's project.
LOG, JVM, DEMO = "headrace-log-", "headrace-jvm-", "headrace-demo-"


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """An empty folder for the time of a `with`."""
    folder, lock = lasting_folder(prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def lasting_folder(prefix: str) -> tuple[Path, int]:
    """An empty folder that nobody else can enter, and the lock on it: closed, it is abandoned.

    One that another process took for abandoned before it was locked is not used.
    """
    remove_abandoned(prefix)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            # On a disk that knows no locks nobody takes it for abandoned, either.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def remove_abandoned(prefix: str) -> None:
    """Remove the folders of this user that nobody uses any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(lock)
