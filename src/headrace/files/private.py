"""Folders and files that no other user of the machine can read, whatever the umask is.

Folders are closed by their modes, so that what other libraries write into them is safe with any
umask; commands, which have a process of their own, set the umask besides.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLOSED = 0o700
# PostgreSQL refuses to run as root: its user has to pass through folders, and may not look around.
PASSABLE = 0o711
PRIVATE_UMASK = 0o077

logger = logging.getLogger(__name__)

# The umask that a command was started with.
_users_umask: int | None = None


def home_folder(home: Path) -> None:
    """Make the home folder, closed to others, or close the one that is there."""
    private_folder(home, _home_mode())


def close_home(home: Path, *, with_store: bool) -> None:
    """Close the folders of a home folder, as far as they are there."""
    close_folder(home, _home_mode())
    close_folder(home / "log")
    if with_store:
        close_folder(home / "store")


def private_folder(folder: Path, mode: int = CLOSED) -> None:
    """Make a folder, and those above it that are missing, with that mode, or close it."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        try:
            one.mkdir(CLOSED)
        except FileExistsError:
            continue
        if mode != CLOSED:
            one.chmod(mode)
    if folder not in missing:
        close_folder(folder, mode)


def close_folder(folder: Path, mode: int = CLOSED) -> None:
    """Take rights beyond the mode from others, if the folder is there; warn where that fails.

    A folder with the sticky bit, such as a machine's /tmp, is meant to be everybody's.
    """
    try:
        found = stat.S_IMODE(folder.stat().st_mode)
        excess = found & ~mode & 0o077
        if excess and found & stat.S_ISVTX:
            logger.warning("%s is shared with other users of the machine: choose another", folder)
        elif excess:
            folder.chmod(found & ~excess)
            logger.warning("%s was open to other users of the machine, and is closed now", folder)
    except FileNotFoundError:
        return
    except PermissionError:
        logger.warning("%s is open to other users of the machine: run chmod go= on it", folder)


def _home_mode() -> int:
    return PASSABLE if os.geteuid() == 0 else CLOSED


def private_file(path: str | Path, flags: int) -> int:
    """Open a file that only its owner can read; an `opener` for `open`."""
    return os.open(path, flags, 0o600)


def current_umask() -> int:
    """The umask of this process, which can only be asked for by setting it."""
    found = os.umask(PRIVATE_UMASK)
    os.umask(found)
    return found


@contextmanager
def private_umask() -> Iterator[None]:
    """Have this process make only private files for the time of a `with`.

    The umask is the whole process's, so only commands may set it.
    """
    global _users_umask  # noqa: PLW0603  as the umask itself
    before = _users_umask = current_umask()
    os.umask(before | PRIVATE_UMASK)
    try:
        yield
    finally:
        _users_umask = None
        os.umask(before)


@contextmanager
def users_umask() -> Iterator[None]:
    """Have what is made for the user have the user's own modes, for the time of a `with`."""
    before = current_umask()
    use_users_umask()
    try:
        yield
    finally:
        os.umask(before)


def use_users_umask() -> None:
    """Have files have the user's own modes from now on."""
    if _users_umask is not None:
        os.umask(_users_umask)
