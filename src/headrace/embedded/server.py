"""Opening and closing the embedded server of a home folder."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from headrace.embedded import supervisor
from headrace.embedded.binaries import Binaries, find_binaries
from headrace.embedded.cluster import (
    DATABASE,
    SUPERUSER,
    ClusterPaths,
    check_version,
    ensure_cluster,
    make_folders,
    server_command,
)
from headrace.embedded.identity import server_environment
from headrace.embedded.locks import FileLock, exclusively, is_held
from headrace.embedded.sockets import PORT, make_socket_folder
from headrace.errors import Unavailable
from headrace.files.private import private_file

START_SECONDS = 60.0
LARGEST_LOG = 16 * 1024 * 1024


@dataclass(frozen=True)
class RunningServer:
    """The record in `server.lock` of the processes that hold it."""

    pid: int
    socket: Path


class EmbeddedServer:
    """A running PostgreSQL in `<home>/pg`, held open by this object.

    All objects of a home folder share it, in this process or another, and it stops when the last
    of them is closed or its process ends. Opening attaches to a running server or starts it, also
    after a crash of the server or of the machine.
    """

    def __init__(self, paths: ClusterPaths, holder: FileLock, socket: Path) -> None:
        self._paths = paths
        self._holder = holder
        self._socket = str(socket)
        self._opened_by = os.getpid()
        atexit.register(self.close)

    @classmethod
    def open(cls, home: Path, version: int | None = None) -> EmbeddedServer:
        """Open the server of `home`, after creating and starting it if need be.

        `version` is a PostgreSQL major version; None is that of existing data, else the newest.
        Raises `embedded-server-failed`.
        """
        paths = ClusterPaths(home.absolute())
        try:
            make_folders(paths)
            with exclusively(paths.open_lock):
                holder = FileLock(paths.holders_lock)
                try:
                    holder.share()
                    socket = _attach_or_start(paths, version)
                except BaseException:
                    holder.close()
                    raise
        except OSError as error:
            raise Unavailable(
                "embedded-server-failed",
                "could not use the home folder for the embedded PostgreSQL",
                detail=str(error),
                hint="Choose a home folder that is writable and on a disk with free space.",
            ) from error
        return cls(paths, holder, socket)

    @property
    def dsn(self) -> str:
        """Return the connection string of the database `headrace`, for all libpq clients."""
        return self.dsn_of(DATABASE)

    def dsn_of(self, database: str, user: str = SUPERUSER) -> str:
        """Return the connection string of another database or role of this server."""
        user, database, host = (quote(part, safe="") for part in (user, database, self._socket))
        return f"postgresql://{user}@/{database}?host={host}&port={PORT}"

    @property
    def is_open(self) -> bool:
        return self._holder.descriptor >= 0

    def close(self) -> None:
        """Release the server, and stop it if nobody else has it open; a second call does nothing.

        A forked child that inherited this object only closes its copy.
        """
        if not self.is_open:
            return
        atexit.unregister(self.close)
        if os.getpid() != self._opened_by:
            self._holder.close()
            return
        try:
            # If the home folder was deleted meanwhile, the supervisor stops the server.
            with suppress(FileNotFoundError), exclusively(self._paths.open_lock):
                self._holder.release()
                _stop_if_unused(self._paths, self._holder)
        finally:
            self._holder.close()

    def __enter__(self) -> EmbeddedServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _attach_or_start(paths: ClusterPaths, version: int | None) -> Path:
    """Start the server if need be and return its socket folder.

    The caller holds `open.lock` and a shared `holders.lock`. While server processes hold
    `server.lock`, the server either answers, or recovers, or was killed and its processes end.
    """
    deadline = time.monotonic() + START_SECONDS
    lock = FileLock(paths.server_lock)
    try:
        while not lock.try_take():
            running = _running(paths)
            if running and _answers(find_binaries(), running.socket):
                check_version(paths.data, version)
                return running.socket
            if time.monotonic() > deadline:
                raise _did_not_start(paths, "the embedded PostgreSQL does not answer")
            time.sleep(0.02)
        binaries, identity = ensure_cluster(paths, version)
        socket = make_socket_folder(paths.root, identity.uid, identity.gid)
        _forget_dead_server(paths)
        _rotate_log(paths.log)
        task = {
            "command": server_command(paths, binaries, identity, socket),
            "spawn_options": identity.spawn_options(),
            "socket": str(socket),
            "holders": str(paths.holders_lock),
            "server_lock": lock.descriptor,
        }
        with open(paths.log, "ab", opener=private_file) as log:
            subprocess.run(
                [sys.executable, "-I", "-S", str(supervisor.__file__), json.dumps(task)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=server_environment(),
                pass_fds=(lock.descriptor,),
                check=True,
            )
    except subprocess.SubprocessError as error:
        raise _did_not_start(paths, "could not start the embedded PostgreSQL") from error
    finally:
        lock.close()
    while not _answers(binaries, socket):
        if not is_held(paths.server_lock) or time.monotonic() > deadline:
            raise _did_not_start(paths, "could not start the embedded PostgreSQL")
        time.sleep(0.02)
    return socket


def _stop_if_unused(paths: ClusterPaths, holder: FileLock) -> None:
    """Stop the server unless somebody else holds it, and wait. The caller holds `open.lock`."""
    last = holder.try_take()
    if not last and holder.try_share():
        return
    # Either the exclusive lock is ours, or the supervisor has it and is stopping the server.
    running = _running(paths)
    started = time.monotonic()
    quickly = False
    if last and running and is_held(paths.server_lock):
        with suppress(ProcessLookupError):
            os.kill(running.pid, supervisor.FAST_SHUTDOWN)
    while is_held(paths.server_lock):
        waited = time.monotonic() - started
        if waited > START_SECONDS:
            raise _did_not_start(paths, "could not stop the embedded PostgreSQL")
        if last and running and waited > supervisor.GRACE_SECONDS and not quickly:
            quickly = True
            with suppress(ProcessLookupError):
                os.kill(running.pid, supervisor.IMMEDIATE_SHUTDOWN)
        time.sleep(0.01)
    if running and not running.socket.is_relative_to(paths.root):
        with suppress(OSError):
            running.socket.rmdir()


def _running(paths: ClusterPaths) -> RunningServer | None:
    try:
        record = json.loads(paths.server_lock.read_text())
        return RunningServer(record["pid"], Path(record["socket"]))
    except (OSError, ValueError, KeyError):
        return None


def _answers(binaries: Binaries, socket: Path) -> bool:
    """Return whether a server accepts connections at `socket`."""
    place = ("-h", str(socket), "-p", str(PORT), "-U", SUPERUSER, "-d", DATABASE)
    done = subprocess.run(
        [str(binaries.pg_isready), "-q", "-t", "5", *place],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=server_environment(),
        check=False,
    )
    return done.returncode == 0


def _forget_dead_server(paths: ClusterPaths) -> None:
    """Remove the postmaster.pid of a killed server. The caller holds `server.lock` exclusively.

    PostgreSQL refuses to start if the process id in that file belongs to any live process. The free
    lock proves that the process we started is dead, and its file stale.
    """
    recorded = _running(paths)
    pid_file = paths.data / "postmaster.pid"
    with suppress(FileNotFoundError):
        if recorded and pid_file.read_text().split("\n", 1)[0] == str(recorded.pid):
            pid_file.unlink()


def _rotate_log(log: Path) -> None:
    with suppress(FileNotFoundError):
        if log.stat().st_size > LARGEST_LOG:
            log.rename(log.with_suffix(".log.old"))


def _did_not_start(paths: ClusterPaths, message: str) -> Unavailable:
    try:
        lines = paths.log.read_text(errors="replace").splitlines()[-10:]
    except OSError:
        lines = []
    return Unavailable(
        "embedded-server-failed",
        message,
        detail="\n".join(lines) or None,
        hint=f"See the server's log file {paths.log}; the disk may be full, or the data damaged.",
    )
