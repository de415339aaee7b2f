"""Where a soak takes place: a server of its own, a small disk for the store, roles, a daemon."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

import headrace
from bench.soak.blame import Window
from bench.soak.daemon import Daemon
from bench.soak.options import Options
from bench.soak.shop import SOURCES, TABLES, specifications
from headrace.embedded import EmbeddedServer
from headrace.embedded.cluster import ClusterPaths

Sql = psycopg.Connection[Any]
SUPERUSER, OWNER, RUNTIME, APPLICATION = "postgres", "soak_owner", "soak_runtime", "soak_app"
DATABASE = "headrace"
DISK_MB = 512
SCHEDULE = "1s"
# Seconds within which a daemon serves, and sources are read from the WAL, when a soak is set up.
PATIENCE = 300.0
# The commands of a soak are left to its daemon: this address makes sure that they start no Spark.
NO_SPARK = "sc://127.0.0.1:1"
SETTINGS: dict[str, Any] = {
    "allow_circular": True,
    # Files that compaction replaced must go during the soak, else its bounds would say nothing.
    "history_retention": 60.0,
    "wal_transition_timeout": 60.0,
}
ROLES = f"""
CREATE ROLE {OWNER} LOGIN; CREATE ROLE {RUNTIME} LOGIN REPLICATION; CREATE ROLE {APPLICATION} LOGIN;
GRANT CREATE ON DATABASE {DATABASE} TO {OWNER}, {RUNTIME};
GRANT ALL ON SCHEMA public TO {OWNER}, {RUNTIME}; GRANT USAGE ON SCHEMA public TO {APPLICATION};
"""


class Site:
    """A running soak's places and processes; use it in a `with`."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.mode = "wal" if options.mode == "wal" else "trigger"
        self.began = time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix="headrace-soak-"))
        self.home = self.folder / "home"
        self.disk = self.folder / "disk"
        self.windows: list[Window] = []
        self._close = contextlib.ExitStack()
        self.disk.mkdir()
        self.small_disk = options.includes("full_disk") and self._mount()
        self.server = EmbeddedServer.open(self.folder / "server")
        self._close.callback(self.stop_server)
        self.daemon: Daemon | None = None

    def clock(self) -> float:
        """Seconds since the load began."""
        return time.monotonic() - self.began

    @property
    def store(self) -> Path:
        return self.disk / "store"

    @property
    def places(self) -> list[str]:
        """The options that name this project to every command."""
        return [
            *("--home", str(self.home), "--store", str(self.store)),
            *("--dsn", self.dsn(RUNTIME), "--setup-dsn", self.dsn(OWNER)),
        ]

    def dsn(self, role: str) -> str:
        return self.server.dsn_of(DATABASE, role)

    def connect(self, role: str = SUPERUSER, name: str = "soak control") -> Sql:
        return psycopg.connect(self.dsn(role), autocommit=True, application_name=name)

    def project(self) -> headrace.Headrace:
        """Open the project for commands that the daemon does."""
        return headrace.connect(
            self.dsn(RUNTIME),
            home=self.home,
            spark=NO_SPARK,
            store=str(self.store),
            setup_dsn=self.dsn(OWNER),
        )

    def command(self, *arguments: str, timeout: float = 600.0) -> dict[str, Any]:
        """Run `headrace` as an operator does; its JSON document, or that of its error."""
        done = subprocess.run(
            [sys.executable, "-m", "headrace", *arguments, "--json", *self.places],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        text = done.stdout if done.returncode == 0 else done.stderr
        try:
            document: dict[str, Any] = json.loads(text)
        except ValueError:
            document = {"error": {"code": "unreadable", "message": text[-500:]}}
        return document

    def set_up(self) -> None:
        """Make roles, tables and stream tables, and start the daemon that makes them."""
        with self.connect() as connection:
            connection.execute(ROLES)
            connection.execute(f"SET ROLE {OWNER}")
            connection.execute(TABLES.encode())
            for table in SOURCES:
                connection.execute(
                    f"GRANT SELECT ON {table} TO {RUNTIME}; GRANT ALL ON {table} TO {APPLICATION}"
                )
        with self.project() as project:
            for name, value in SETTINGS.items():
                project.set(name, value)
            project.set("cdc_mode", self.mode)
        self.daemon = Daemon(self.places, self.folder, self.clock)
        self._close.callback(self.daemon.close)
        if not self.until_serving(PATIENCE):
            raise SystemExit(f"the daemon does not serve: {self.daemon.log_end()}")
        with self.project() as project:
            project.create_stream_tables(specifications(SCHEDULE))
        if self.mode == "wal":
            self._until_wal()

    def until_serving(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.daemon is not None and self.daemon.serving:
                return True
            time.sleep(0.1)
        return False

    @contextlib.contextmanager
    def server_fault(self, kind: str) -> Iterator[None]:
        """Note the time in which the soak keeps everybody from the server."""
        begin = self.clock()
        try:
            yield
            self._until_server_answers()
        finally:
            self.windows.append(Window(kind, begin, self.clock()))

    def stop_server(self) -> None:
        self.server.close()

    def kill_server(self) -> None:
        """End the server's first process without a word; the others follow by themselves."""
        record = json.loads(ClusterPaths(self.folder / "server").server_lock.read_text())
        os.kill(int(record["pid"]), signal.SIGKILL)
        self.server.close()

    def start_server(self) -> None:
        self.server = EmbeddedServer.open(self.folder / "server")

    def _until_server_answers(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                self.connect().close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def _until_wal(self) -> None:
        """Wait until every source is read from the log."""
        deadline = time.monotonic() + PATIENCE
        with self.connect() as connection:
            while True:
                row = connection.execute(
                    "SELECT count(*) FILTER (WHERE mode <> 'WAL') FROM headrace.sources"
                ).fetchone()
                if row == (0,):
                    return
                if time.monotonic() > deadline:
                    raise SystemExit(f"{row} sources are not read from the log")
                time.sleep(0.5)

    def _mount(self) -> bool:
        """Put the store on a file system of its own that can be filled; needs root."""
        size = f"size={DISK_MB}m"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(self.disk)],  # noqa: S607
            capture_output=True,
            check=False,
        )
        if done.returncode:
            return False
        self._close.callback(
            lambda: subprocess.run(["umount", "--lazy", str(self.disk)], check=False)  # noqa: S607
        )
        return True

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *_: object) -> None:
        self._close.close()
        if not self.options.keep:
            shutil.rmtree(self.folder, ignore_errors=True)
