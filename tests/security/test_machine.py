"""Other users of the machine read no file of a project, and no port answers them.

A project is made and served under the most careless umask, in a folder that all may enter. The
daemon's JVM, its Python workers and the embedded server are included.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from headrace.embedded import EmbeddedServer
from headrace.files.temporary import JVM
from tests.security.other_user import (
    answers,
    as_other_user,
    descendants,
    listening,
    readable,
    wait_until_gone,
)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc"),
]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")

ROWS = 20_000


@dataclass
class Machine:
    """A folder for everybody, with a home folder and a temporary folder in it."""

    folder: Path
    daemon: subprocess.Popen[str] | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "headrace", *arguments, "--home", str(self.home)]

    def run(self, *arguments: str) -> None:
        done = subprocess.run(
            self.command(*arguments),
            env=self.environment,
            umask=0,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Have a daemon serve, and Spark started in it."""
        self.daemon = subprocess.Popen(
            self.command("up"),
            env=self.environment,
            umask=0,
            text=True,
            stdout=subprocess.PIPE,
        )
        assert self.daemon.stdout is not None
        assert self.daemon.stdout.readline()

    def stop(self, how: signal.Signals) -> None:
        if self.daemon is not None:
            self.daemon.send_signal(how)
            self.daemon.communicate()
            self.daemon = None

    def paths(self) -> list[Path]:
        """All that there is in the two folders, and the home folder itself."""
        return [self.home, *self.home.rglob("*"), *self.temporary.rglob("*")]


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="machine-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        made = Machine(folder)
        made.temporary.mkdir()
        made.temporary.chmod(0o1777)
        made.environment = {**os.environ, "TMPDIR": str(made.temporary)}
        try:
            _fill(made)
            yield made
        finally:
            made.stop(signal.SIGTERM)


def _fill(machine: Machine) -> None:
    machine.run("init")
    # Spark writes files for more than so many rows.
    machine.run("set", "collect_rows", "100")
    with EmbeddedServer.open(machine.home) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, note text)")
            connection.execute(
                "INSERT INTO orders SELECT n, n % 1000, repeat('x', 30)"
                f" FROM generate_series(1, {ROWS}) AS n"
            )
        machine.start()
        query = "SELECT customer, count(*) AS n FROM orders GROUP BY customer"
        machine.run("create", "totals", "--query", query)
        machine.run("create", "notes", "--query", "SELECT id, note FROM orders")
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("UPDATE orders SET customer = customer + 1")
        machine.run("refresh", "totals")
        machine.run("refresh", "notes")


def test_modes_of_all_files(machine: Machine) -> None:
    """Whatever the umask: 0600 and 0700. PostgreSQL's user has to pass through two folders."""
    passable = {machine.home, machine.home / "pg"} if os.geteuid() == 0 else set()
    paths = machine.paths()
    assert {"store", "log", "pg"} <= {path.name for path in machine.home.iterdir()}
    assert any(path.name.startswith("part-") for path in paths), "Spark wrote files"
    assert any(path.name.startswith(JVM) for path in paths)
    open_to_others = {}
    for path in paths:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if not path.is_symlink() and mode & 0o077 & ~(0o011 if path in passable else 0):
            open_to_others[str(path)] = oct(mode)
    assert open_to_others == {}


@as_root
def test_another_user_reads_no_file(machine: Machine) -> None:
    paths = [str(path) for path in machine.paths()]
    assert any(path.endswith(".s.PGSQL.5432") for path in paths)
    other = machine.folder / "other"
    other.write_text("for all")
    other.chmod(0o644)
    try:
        assert as_other_user(lambda: readable([*paths, str(other)])) == [str(other)]
    finally:
        other.unlink()


@as_root
def test_no_port_answers_another_user(machine: Machine) -> None:
    assert machine.daemon is not None
    processes = descendants(machine.daemon.pid)
    ports = listening(processes)
    assert len(ports) >= 3, "py4j, the driver, its block manager"
    found = as_other_user(lambda: {str(port): answers(port) for port in ports})
    assert found == {str(port): {} for port in ports}


def test_arguments_hold_no_secret(machine: Machine) -> None:
    assert machine.daemon is not None
    shown = [Path(f"/proc/{one}/cmdline").read_text() for one in descendants(machine.daemon.pid)]
    assert any("spark.authenticate=true" in text for text in shown)
    assert not any("authenticate.secret" in text for text in shown)


def test_what_a_killed_daemon_left_is_removed(machine: Machine) -> None:
    """At the next start, whatever it was killed by; what others left stays."""
    assert machine.daemon is not None
    processes = descendants(machine.daemon.pid)
    (left,) = machine.temporary.glob(f"{JVM}*")
    stranger = machine.temporary / f"{JVM}unowned-file"
    stranger.touch()
    machine.stop(signal.SIGKILL)
    for process in processes[1:]:
        wait_until_gone(process)
    assert left.is_dir()
    machine.start()
    machine.run("refresh", "totals", "--mode", "FULL")
    assert not left.exists()
    (_,) = (one for one in machine.temporary.glob(f"{JVM}*") if one.is_dir())
    assert stranger.exists()
    machine.stop(signal.SIGTERM)
    assert [one.name for one in machine.temporary.iterdir()] == [stranger.name]
