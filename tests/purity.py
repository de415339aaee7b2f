"""The pure test that is running, and the servers that it may not start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

# Programs of PostgreSQL and of Spark, and the one that starts a PostgreSQL.
SERVERS = frozenset(
    {"postgres", "initdb", "pg_ctl", "spark-submit", "spark-class", "supervisor.py"}
)
# The pure test that is running, which may start none of them.
PURE: list[str] = []


def refuse_servers(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail a pure test that starts a server or a JVM: its missing marker would be a lie."""
    if event != "subprocess.Popen" or not PURE:
        return
    words = [os.fspath(word) for word in arguments[1]]
    started = {Path(os.fsdecode(word)).name for word in words}
    runs_java = Path(os.fsdecode(words[0])).name == "java" and words[1:] != ["-version"]
    if started & SERVERS or runs_java:
        pytest.fail(f"{PURE[-1]} starts a server: mark it postgres, spark or e2e")
