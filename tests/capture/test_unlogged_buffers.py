"""Change buffers without WAL: a clean restart keeps them, a promoted standby has none of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from headrace.capture.cut import open_cut
from headrace.embedded import EmbeddedServer
from headrace.source.connection import Database
from tests.capture.follower import Follower

pytestmark = pytest.mark.postgres

EMPTIED = "a crash of the server emptied an unlogged table"
WRITE = "INSERT INTO {} SELECT generate_series(11, 15)"


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="headrace-unlogged-"))
    yield folder
    shutil.rmtree(folder)


def captured(server: EmbeddedServer, database: Database) -> dict[str, Follower]:
    """Two sources with rows in their buffers, one of them without WAL."""
    with psycopg.connect(server.dsn, autocommit=True) as application:
        for name in ("unlogged", "logged"):
            application.execute(f"CREATE TABLE {name} (a integer)")
            application.execute(f"INSERT INTO {name} SELECT generate_series(1, 10)")
        followers = {
            name: Follower(database, name, unlogged=name == "unlogged")
            for name in ("unlogged", "logged")
        }
        for name, follower in followers.items():
            follower.tick()
            application.execute(WRITE.format(name))
    return followers


def test_a_clean_restart_keeps_them(home: Path) -> None:
    with ExitStack() as stack:
        with EmbeddedServer.open(home) as server:
            database = stack.enter_context(Database(server.dsn))
            followers = captured(server, database)
        with EmbeddedServer.open(home):
            database.close()
            for name, follower in followers.items():
                tick = follower.tick()
                assert (tick.copied, tick.changed) == ({}, 5)
                assert follower.bag(name).total() == 15


def test_a_promoted_standby_has_none(home: Path) -> None:
    with ExitStack() as stack:
        with EmbeddedServer.open(home) as server:
            database = stack.enter_context(Database(server.dsn))
            followers = captured(server, database)
        standby = home / "pg" / "data" / "standby.signal"
        standby.touch()
        shutil.chown(standby, standby.parent.owner())
        with EmbeddedServer.open(home) as server:
            database.close()
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                assert connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,)
                assert connection.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)
            with open_cut(database, [followers["unlogged"].source("unlogged")]) as cut:
                assert cut.recopy_reasons == {followers["unlogged"].oids["unlogged"]: EMPTIED}
            for name, follower in followers.items():
                tick = follower.tick()
                assert bool(tick.copied) is (name == "unlogged")
                assert follower.bag(name).total() == 15
