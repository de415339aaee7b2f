"""Other processes that have a server open, and looking at a server from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from headrace.embedded.cluster import ClusterPaths
from headrace.embedded.locks import is_held

HOLDER = """
import sys
from pathlib import Path
from headrace.embedded import EmbeddedServer

server = EmbeddedServer.open(Path(sys.argv[1]))
sys.stdout.write(server.dsn + "\\n")
sys.stdout.flush()
sys.stdin.readline()
"""


class Holder:
    """Another process that has the server of a home folder open."""

    def __init__(self, home: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self.pid = self._process.pid
        assert self._process.stdout
        self.dsn = self._process.stdout.readline().strip()
        assert self.dsn, "the other process could not open the server"

    def leave(self) -> None:
        """Let the process end in the ordinary way."""
        self._process.communicate("\n", timeout=60)

    def send(self, number: signal.Signals) -> None:
        """End the process by a signal."""
        self._process.send_signal(number)
        self._process.communicate(timeout=60)


def server_pid(paths: ClusterPaths) -> int:
    pid: int = json.loads(paths.server_lock.read_text())["pid"]
    return pid


def is_running(paths: ClusterPaths) -> bool:
    return is_held(paths.server_lock)


def run(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(statement)


def answer(dsn: str, query: str) -> Any:
    """The first value of the first row of a query."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def eventually(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
