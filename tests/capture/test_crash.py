"""Crashes of the server, and servers that are no primaries: each test has a server of its own."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from headrace.capture.cut import open_cut
from headrace.embedded import EmbeddedServer
from headrace.errors import Transient, Unavailable
from headrace.source.connection import Database
from tests.capture.follower import Follower

pytestmark = pytest.mark.postgres


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="headrace-crash-"))
    yield folder
    shutil.rmtree(folder)


def crash(home: Path) -> None:
    """Kill the server as a failing machine would, and wait until it is gone."""
    pid = int((home / "pg" / "data" / "postmaster.pid").read_text().split("\n")[0])
    os.kill(pid, signal.SIGQUIT)
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.02)


def test_what_a_cut_contains_survives_a_crash(home: Path) -> None:
    with EmbeddedServer.open(home) as server, Database(server.dsn) as database:
        with psycopg.connect(server.dsn, autocommit=True) as application:
            application.execute("CREATE TABLE logged (a integer)")
            application.execute("CREATE UNLOGGED TABLE unlogged (a integer)")
            application.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
            application.execute("SELECT pg_reload_conf()")
            logged = Follower(database, "logged")
            lazy = Follower(database, "unlogged", unlogged=True)
            logged.tick()
            lazy.tick()
            application.execute("SET synchronous_commit = off")
            application.execute("INSERT INTO logged SELECT generate_series(1, 100)")
            application.execute("INSERT INTO unlogged SELECT generate_series(1, 100)")
            assert logged.tick().copied == {}
            assert lazy.tick().copied == {}
            application.execute("INSERT INTO logged VALUES (-1)")
        crash(home)

        with EmbeddedServer.open(home) as again:
            assert again.dsn == server.dsn
            with pytest.raises(Transient) as lost:
                logged.tick()
            assert lost.value.code == "connection-lost"
            with psycopg.connect(again.dsn, autocommit=True) as application:
                application.execute("INSERT INTO logged VALUES (-2)")
                assert logged.tick().copied == {}
                assert logged.bag("logged").total() in (101, 102)
                with open_cut(database, [lazy.source("unlogged")]) as cut:
                    reason = "a crash of the server emptied an unlogged table"
                    assert cut.dirty == {lazy.oids["unlogged"]: reason}
                assert set(lazy.tick().copied or ()) == {"unlogged"}
                assert lazy.bag("unlogged").total() == 0
                application.execute("INSERT INTO unlogged VALUES (1)")
                assert lazy.tick().copied == {}
                assert lazy.tick().skipped


def test_no_cut_on_a_standby(home: Path) -> None:
    with EmbeddedServer.open(home) as server:
        with psycopg.connect(server.dsn, autocommit=True) as application:
            application.execute("CREATE TABLE t (a integer)")
        with Database(server.dsn) as database:
            follower = Follower(database, "t")
    (home / "pg" / "data" / "standby.signal").touch()
    shutil.chown(home / "pg" / "data" / "standby.signal", (home / "pg" / "data").owner())
    with EmbeddedServer.open(home) as server, Database(server.dsn) as database:
        with pytest.raises(Unavailable) as refused, open_cut(database, [follower.source("t")]):
            pass
        assert refused.value.code == "standby-server"
