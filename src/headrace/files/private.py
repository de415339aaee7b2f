"""Folders and files that no other user of the machine can read, under any umask.

Folders are closed by their modes, so that files of other libraries in them are safe under any
umask; commands, which have their own process, set the umask too.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLOSED = 0o700
# PostgreSQL refuses to run as root: its user has to traverse folders, without listing them.
PASSABLE = 0o711
PRIVATE_UMASK = 0o077

logger = logging.getLogger(__name__)

# The umask that a command was started with.
_users_umask: int | None = None


def home_folder(home: Path) -> None:
    """Make the home folder, closed to others, or close the existing one."""
    private_folder(home, _home_mode())


def close_home(home: Path, *, with_store: bool) -> None:
    """Close the folders of a home folder that exist."""
    close_folder(home, _home_mode())
    close_folder(home / "log")
    if with_store:
        close_folder(home / "store")


def private_folder(folder: Path, mode: int = CLOSED) -> None:
    """Make a folder and its missing parents with that mode, or close the existing one."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        try:
            path.mkdir(CLOSED)
        except FileExistsError:
            continue
        if mode != CLOSED:
            path.chmod(mode)
    if folder not in missing:
        close_folder(folder, mode)


def close_folder(folder: Path, mode: int = CLOSED) -> None:
    """Remove rights of others beyond the mode from an existing folder; warn if that fails.

    A folder with the sticky bit, such as /tmp, is shared on purpose and only gets a warning.
    """
    try:
        current = stat.S_IMODE(folder.stat().st_mode)
        excess = current & ~mode & 0o077
        if excess and current & stat.S_ISVTX:
            logger.warning("%s is shared with other users of the machine: choose another", folder)
        elif excess:
            folder.chmod(current & ~excess)
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
    """Return the umask of this process, which can only be read by setting it."""
    umask = os.umask(PRIVATE_UMASK)
    os.umask(umask)
    return umask


@contextmanager
def private_umask() -> Iterator[None]:
    """Make files of this process private inside a `with`.

    The umask belongs to the whole process, so only commands may set it.
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
    """Create files with the user's own umask inside a `with`."""
    before = current_umask()
    use_users_umask()
    try:
        yield
    finally:
        os.umask(before)


def use_users_umask() -> None:
    """Create files with the user's own umask from now on."""
    if _users_umask is not None:
        os.umask(_users_umask)
