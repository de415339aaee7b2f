"""The operating-system user that runs the server's programs.

PostgreSQL refuses to run as root. Started by root it runs as an ordinary user, with the fewest
rights with which it can reach its files, tried in this order:

    1. the user alone
    2. the user with the capability to pass closed folders, if the home folder or the programs are
       below a folder that only root may enter (for example a checkout in a private folder)

Modes and owners outside the server's own folders are never changed.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from headrace.embedded.binaries import Binaries
from headrace.errors import Unavailable

CANDIDATES = ("postgres", "nobody")
CAPABILITY = "dac_override"

# Enters the data folder, reads a shared file, and has initdb find its neighbour programs.
PROBE = 'cd "$1" && test -w . && test -r "$2" && exec "$3" --show --pgdata "$1"'


class SpawnOptions(TypedDict, total=False):
    """The options of `subprocess.Popen` for the user that runs a program."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class ProgramUser:
    """A user and group, and how to start a program as them.

    With a `prefix`, the prefix program switches the user, otherwise the parent process if needed.
    """

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()

    def command(self, *arguments: str | Path) -> list[str]:
        return [*self.prefix, *map(str, arguments)]

    def spawn_options(self) -> SpawnOptions:
        if self.prefix or self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def server_environment() -> dict[str, str]:
    """Return our environment without the variables that affect PostgreSQL's programs."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PG", "LC_")) and name not in ("LANG", "LANGUAGE")
    }
    return {**variables, "LC_ALL": "C", "TZ": "UTC"}


def choose_identity(data: Path, binaries: Binaries) -> ProgramUser:
    """Return the user to run `binaries` on the folder `data`, with the fewest sufficient rights.

    As an ordinary user: that user. As root: the owner of `data`, which `give_to_server` has set.
    """
    if os.geteuid() != 0:
        return ProgramUser(os.geteuid(), os.getegid())
    owner = data.stat()
    failures = []
    for identity in _ladder(owner.st_uid, owner.st_gid):
        failure = _probe_failure(identity, data, binaries)
        if failure is None:
            return identity
        failures.append(failure)
    raise Unavailable(
        "embedded-server-failed",
        f"operating-system user {_name(owner.st_uid)} cannot reach the embedded PostgreSQL",
        detail=" / ".join(failures),
        hint=(
            "PostgreSQL refuses to run as root. Work as an ordinary user, or keep the home folder "
            "and the Python environment where other users may enter, or install setpriv, which "
            "is part of util-linux."
        ),
    )


def give_to_server(folder: Path) -> None:
    """Change the owner of a new folder to the user that will run the server."""
    if os.geteuid() == 0:
        uid, gid = _unprivileged_user()
        os.chown(folder, uid, gid)


def _unprivileged_user() -> tuple[int, int]:
    for name in CANDIDATES:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return user.pw_uid, user.pw_gid
    raise Unavailable(
        "embedded-server-failed",
        "there is no operating-system user for the embedded PostgreSQL",
        detail=f"PostgreSQL refuses to run as root; there is no user {' or '.join(CANDIDATES)}.",
        hint="Work as an ordinary user, or create the user postgres.",
    )


def _ladder(uid: int, gid: int) -> Iterator[ProgramUser]:
    yield ProgramUser(uid, gid)
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return
    only = f"-all,+{CAPABILITY}"
    yield ProgramUser(
        uid,
        gid,
        prefix=(
            setpriv,
            f"--reuid={uid}",
            f"--regid={gid}",
            "--clear-groups",
            f"--inh-caps={only}",
            f"--ambient-caps={only}",
            f"--bounding-set={only}",
            # access(2) ignores the capabilities of an ordinary user without this bit, and initdb
            # looks for its neighbours with access(2).
            "--securebits=+no_setuid_fixup",
        ),
    )


def _probe_failure(identity: ProgramUser, data: Path, binaries: Binaries) -> str | None:
    """Return the error of an attempt to reach all files as `identity`; None on success."""
    probe = identity.command(
        "/bin/sh", "-c", PROBE, "probe", data, binaries.bootstrap_file, binaries.initdb
    )
    try:
        done = subprocess.run(
            probe,
            capture_output=True,
            text=True,
            cwd="/",
            env=server_environment(),
            timeout=30,
            check=False,
            **identity.spawn_options(),
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "permission denied"


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
