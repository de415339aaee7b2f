"""Servers whose WAL says too little (wal_level = replica), always and for a while."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.capture.wal.availability import obstacles, read_server
from headrace.catalog.records import CaptureMode
from headrace.embedded import EmbeddedServer, cluster
from headrace.errors import UserError
from headrace.ingest import transition
from headrace.ingest.attempts import CaptureAttempts
from headrace.lifecycle.create import make
from headrace.lifecycle.planned_table import TableRequest
from tests.ingest.wal_objects import LEFT
from tests.ingest.world import KEY, World
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

TABLE = "CREATE TABLE t (a integer PRIMARY KEY, b text)"
REASON = "wal_level is replica"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(transition, "AGAIN", math.inf)
    folder = Path(tempfile.mkdtemp(prefix="headrace-wal-level-"))
    yield folder
    shutil.rmtree(folder)


@contextmanager
def opened(home: Path, monkeypatch: pytest.MonkeyPatch, level: str) -> Iterator[World]:
    """A project on a server of that level, each time in the same database."""
    settings = tuple({**dict(cluster.SETTINGS), "wal_level": level}.items())
    monkeypatch.setattr(cluster, "SETTINGS", settings)
    with (
        EmbeddedServer.open(home) as server,
        psycopg.connect(server.dsn, autocommit=True) as application,
        headrace.connect(server.dsn, home=home / "project") as project,
    ):
        yield World(project, server.dsn, application, KEY)


def test_a_server_without_it_is_captured_by_triggers(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(home, monkeypatch, "replica") as world:
        with world.engine.database.session() as connection:
            (obstacle,) = obstacles(read_server(connection, "headrace_1"))
        assert obstacle.reason == REASON
        world.project.set("cdc_mode", "auto")
        world.run(TABLE, "INSERT INTO t VALUES (1, 'x')")
        put_tables(world.project, TableRequest("reader", "SELECT * FROM t"))
        assert world.cut().copied == {"t"}
        world.run("INSERT INTO t VALUES (2, 'y')")
        assert world.cut().changed == {"t": 1}
        assert (world.source.mode, world.source.followed) == (CaptureMode.TRIGGER, None)
        assert REASON in (world.source.mode_reason or "")
        (health,) = world.project.check_cdc_health()
        assert (health.mode, health.slot, health.level) == ("TRIGGER", None, "fine")
        asked = TableRequest.of("other", "SELECT a FROM t", {"cdc_mode": "wal"})
        with pytest.raises(UserError) as refused:
            make(world.engine, (asked,))
        assert refused.value.code == "invalid-option"
        assert REASON in refused.value.message
        assert world.application.execute(LEFT).fetchall() == []


def test_a_server_that_loses_it_and_gets_it_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL does not start with a slot that it cannot serve, so a DBA has dropped that."""
    with opened(home, monkeypatch, "logical") as world:
        world.run(TABLE)
        world.follow("t")
        world.run("INSERT INTO t VALUES (1, 'x')")
        assert world.follows().changed == {"t": 1}
        world.run("INSERT INTO t VALUES (2, 'in no cut')")
        world.run(f"SELECT pg_drop_replication_slot('{world.slot}')")
    with opened(home, monkeypatch, "replica") as world:
        world.run("INSERT INTO t VALUES (3, 'captured by nobody')")
        world.falls_back("was dropped")
        world.run("INSERT INTO t VALUES (4, 'by triggers')")
        assert world.follows().changed == {"t": 1}
        world.engine.part(CaptureAttempts).followed_at.clear()
        world.run("INSERT INTO t VALUES (5, 'by triggers')")
        assert world.follows().changed == {"t": 1}
        assert REASON in (world.source.mode_reason or "")
    with opened(home, monkeypatch, "logical") as world:
        world.run("UPDATE t SET b = 'by triggers still'")
        world.go()
        world.run("DELETE FROM t WHERE a = 5")
        assert world.follows().changed == {"t": 1}
