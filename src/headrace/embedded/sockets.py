"""A folder for the server's unix socket.

The kernel accepts socket addresses of about a hundred bytes. A home folder with a longer path gets
a short folder in the temporary folder instead, named by a hash of the path.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from headrace.errors import Unavailable

PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"

# 107 on Linux, 103 on macOS.
LONGEST_ADDRESS = 103


def fits(folder: Path) -> bool:
    """Return whether the kernel and PostgreSQL's clients accept a socket in `folder`."""
    # Clients split a list of hosts at commas.
    return len(os.fsencode(folder / SOCKET_NAME)) <= LONGEST_ADDRESS and "," not in str(folder)


def choose_socket_folder(cluster: Path, temporary: Path) -> Path:
    """Return the folder for the socket of a cluster: inside its folder if that path fits."""
    inside = cluster / "socket"
    if fits(inside):
        return inside
    digest = hashlib.sha256(os.fsencode(cluster)).hexdigest()[:16]
    short = temporary / f"headrace-{digest}"
    if fits(short):
        return short
    raise Unavailable(
        "embedded-server-failed",
        "no path is short enough for the server's socket",
        detail=f"A socket in {short} would have an address of over {LONGEST_ADDRESS} bytes.",
        hint="Set TMPDIR to a folder with a short and simple path.",
    )


def make_socket_folder(cluster: Path, uid: int, gid: int) -> Path:
    """Make the socket folder, open to the server's user alone, and return it.

    Anybody may write to a temporary folder, so an existing folder is used only if it is no link,
    belongs to that user and is closed to all others.
    """
    folder = choose_socket_folder(cluster, Path(tempfile.gettempdir()).absolute())
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    is_own = status.st_uid in (uid, os.geteuid())
    if not stat.S_ISDIR(status.st_mode) or not is_own or status.st_mode & 0o077:
        raise Unavailable(
            "embedded-server-failed",
            "the folder for the server's socket is not private",
            detail=f"{folder} is a link, belongs to another user or is open to others.",
            hint="Remove it, or set TMPDIR to a folder of your own.",
        )
    if status.st_uid != uid:
        os.chown(folder, uid, gid, follow_symlinks=False)
    return folder
