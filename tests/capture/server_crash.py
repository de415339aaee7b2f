"""Crashes of a PostgreSQL server, and a WAL writer that is stopped."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg


def crash(home: Path) -> None:
    """Kill the server as a failing machine would, and wait until it is gone."""
    pid = int((home / "pg" / "data" / "postmaster.pid").read_text().split("\n")[0])
    os.kill(pid, signal.SIGQUIT)
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.02)


@contextmanager
def stopped_wal_writer(application: psycopg.Connection[Any]) -> Iterator[None]:
    """Stop the WAL writer, so that asynchronous commits stay in memory."""
    query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
    row = application.execute(query).fetchone()
    assert row is not None
    os.kill(row[0], signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(row[0], signal.SIGCONT)
