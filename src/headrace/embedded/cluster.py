"""The data folder of the embedded server, and its settings.

Everything is in `<home>/pg`: `data` (PostgreSQL's own), `socket`, and the lock files. A data folder
is made under another name and renamed when it is complete, so an incomplete one is never started.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from headrace.embedded.binaries import DEFAULT_VERSION, Binaries, find_binaries
from headrace.embedded.identity import (
    ProgramUser,
    choose_identity,
    give_to_server,
    server_environment,
)
from headrace.embedded.sockets import PORT
from headrace.errors import Unavailable
from headrace.files.private import home_folder, private_folder

DATABASE = "headrace"
SUPERUSER = "postgres"

# Given on the command line, so they override the files in the data folder.
SETTINGS = (
    ("listen_addresses", ""),
    ("port", str(PORT)),
    ("unix_socket_permissions", "0700"),
    ("wal_level", "logical"),
    ("max_prepared_transactions", "64"),
    ("max_connections", "100"),
    ("max_wal_senders", "10"),
    ("max_replication_slots", "10"),
    ("max_slot_wal_keep_size", "4GB"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("log_destination", "stderr"),
    ("logging_collector", "off"),
)

# Peer authentication: only the owner of the folder and root may connect, under any role; in
# particular not the unprivileged user that runs the server for root.
HOST_BASED_AUTHENTICATION = """\
local all         all peer map=headrace
local replication all peer map=headrace
"""


@dataclass(frozen=True)
class ClusterPaths:
    """The paths of the embedded server of one home folder."""

    home: Path

    @property
    def root(self) -> Path:
        return self.home / "pg"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def unfinished_data(self) -> Path:
        return self.root / "data.unfinished"

    @property
    def open_lock(self) -> Path:
        return self.root / "open.lock"

    @property
    def holders_lock(self) -> Path:
        return self.root / "holders.lock"

    @property
    def server_lock(self) -> Path:
        return self.root / "server.lock"

    @property
    def log(self) -> Path:
        return self.home / "log" / "postgres.log"


def make_folders(paths: ClusterPaths) -> None:
    """Make the home folder and the server's folder in it, unless they exist."""
    home_folder(paths.home)
    private_folder(paths.log.parent)
    home_folder(paths.root)


def ensure_cluster(paths: ClusterPaths, version: int | None) -> tuple[Binaries, ProgramUser]:
    """Make the data folder if there is none; return the programs and the user to run them as.

    An existing folder keeps its PostgreSQL version; requesting another one is an error.
    """
    if paths.data.exists():
        _check_owner(paths.data)
        binaries = find_binaries(check_version(paths.data, version))
        return binaries, choose_identity(paths.data, binaries)
    binaries = find_binaries(DEFAULT_VERSION if version is None else version)
    shutil.rmtree(paths.unfinished_data, ignore_errors=True)
    paths.unfinished_data.mkdir(mode=0o700)
    give_to_server(paths.unfinished_data)
    identity = choose_identity(paths.unfinished_data, binaries)
    _initialize(paths.unfinished_data, binaries, identity)
    paths.unfinished_data.rename(paths.data)
    return binaries, identity


def check_version(data: Path, requested: int | None) -> int:
    """Return the PostgreSQL version of a data folder; raise if another one is requested."""
    try:
        version = int((data / "PG_VERSION").read_text())
    except (OSError, ValueError) as error:
        raise Unavailable(
            "embedded-server-failed",
            "the home folder does not contain the data of a PostgreSQL server",
            detail=str(error),
            hint=f"Move {data} away and open the home folder again.",
        ) from error
    if requested is not None and requested != version:
        raise Unavailable(
            "embedded-server-failed",
            f"the home folder contains data of PostgreSQL {version}, not {requested}",
            hint=f"Open it with version {version}, or use another home folder.",
        )
    return version


def server_command(
    paths: ClusterPaths, binaries: Binaries, identity: ProgramUser, socket: Path
) -> list[str]:
    """Write the authentication files and return the command line that starts the server."""
    authentication = paths.data / "pg_hba.conf"
    authentication.write_text(HOST_BASED_AUTHENTICATION)
    users = paths.data / "pg_ident.conf"
    users.write_text(user_map(_allowed_users(paths.root)))
    quoted_socket = str(socket).replace('"', '""')
    settings = (
        *SETTINGS,
        ("unix_socket_directories", f'"{quoted_socket}"'),
        ("hba_file", str(authentication)),
        ("ident_file", str(users)),
    )
    options = [part for name, value in settings for part in ("-c", f"{name}={value}")]
    return identity.command(binaries.postgres, "-D", paths.data, *options)


def user_map(names: tuple[str, ...]) -> str:
    """Return a pg_ident.conf that lets operating-system users connect under any role."""
    return "".join(f'headrace "{name}" all\n' for name in names)


def _initialize(data: Path, binaries: Binaries, identity: ProgramUser) -> None:
    _run(
        identity,
        binaries.initdb,
        f"--pgdata={data}",
        f"--username={SUPERUSER}",
        "--encoding=UTF8",
        "--locale=C",
        "--auth=peer",
        "--no-instructions",
    )
    # The single-user backend reports a failed statement in its output, not in its exit code.
    output = _run(
        identity,
        binaries.postgres,
        "--single",
        "-D",
        data,
        "postgres",
        statement=f"CREATE DATABASE {DATABASE}",
    )
    if "ERROR:" in output:
        raise _failed("could not initialize the embedded PostgreSQL", output)


def _run(identity: ProgramUser, *arguments: str | Path, statement: str | None = None) -> str:
    try:
        done = subprocess.run(
            identity.command(*arguments),
            input=statement or "",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd="/",
            env=server_environment(),
            check=False,
            **identity.spawn_options(),
        )
    except OSError as error:
        raise _failed("could not initialize the embedded PostgreSQL", str(error)) from error
    if done.returncode != 0:
        raise _failed("could not initialize the embedded PostgreSQL", done.stdout)
    return done.stdout


def _failed(message: str, output: str) -> Unavailable:
    lines = [line for line in output.splitlines() if line.strip()][-10:]
    full = any("No space left on device" in line for line in lines)
    return Unavailable(
        "embedded-server-failed",
        message,
        detail="\n".join(lines) or None,
        hint="Free some disk space and try again." if full else None,
    )


def _check_owner(data: Path) -> None:
    owner = data.stat().st_uid
    if os.geteuid() not in (0, owner):
        raise Unavailable(
            "embedded-server-failed",
            "the home folder's server belongs to another operating-system user",
            detail=f"{data} belongs to user {owner}; this process runs as {os.geteuid()}.",
            hint="Use another home folder, or give the server's address as dsn.",
        )


def _allowed_users(root: Path) -> tuple[str, ...]:
    names = []
    for uid in dict.fromkeys((root.stat().st_uid, 0)):
        try:
            names.append(pwd.getpwuid(uid).pw_name)
        except KeyError:
            continue
    return tuple(names)
