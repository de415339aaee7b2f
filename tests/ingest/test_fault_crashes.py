"""A process that ends in any step of ingest, and a server that does: made good in WAL mode.

Processes are really killed in tests/crash and in test_transition_crashes. Here the next one goes on
from where a step was left, which costs no start of a process, so that every place is tried.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.capture.wal.slot import advance, read_status
from headrace.catalog.records import CaptureMode
from headrace.embedded import EmbeddedServer, cluster
from headrace.errors import NeedsReinit
from headrace.ingest import transition
from headrace.steps import Step
from tests.capture.test_crash import crash, stopped_wal_writer
from tests.capture.wal.following import flushed, peeked
from tests.ingest.world import FULL, KEY, WAL, World

pytestmark = pytest.mark.postgres


class Ended(BaseException):
    """The process is gone."""


class Lives:
    """A world whose process ends now and then, and is started again."""

    def __init__(self, world: World, home: Path) -> None:
        self.world = world
        self.home = home

    def end_at(self, place: int) -> bool:
        """Take a cut that ends at the step of this number, before or after it; whether it did."""
        seen = 0

        def watch(when: str, step: Step) -> None:
            nonlocal seen
            self.world.saw(when, step)
            seen += 1
            if seen > place:
                raise Ended

        self.world.engine.watch = watch
        try:
            self.world.take()
        except Ended:
            return True
        finally:
            self.world.engine.watch = self.world.saw
        return False

    def start_again(self) -> None:
        world = self.world
        world.project.close()
        world.project = headrace.connect(world.dsn, home=self.home)
        world.engine.watch = world.saw


@pytest.fixture
def lives(world: World, tmp_path: Path) -> Iterator[Lives]:
    yield Lives(world, tmp_path)
    world.project.close()


def lose_the_slot(world: World) -> None:
    world.run(f"SELECT pg_drop_replication_slot('{world.slot}')")


def stay(world: World) -> None:
    """Only rows are written."""


# What is done between two cuts; afterwards the source goes to the log again.
WAYS: dict[str, Callable[[World], None]] = {
    "by the log": stay,
    "away from the log": lose_the_slot,
}


@pytest.mark.parametrize(("mode", "way"), [(FULL, "by the log"), *((KEY, way) for way in WAYS)])
def test_an_end_in_every_step(lives: Lives, way: str) -> None:
    """Twice in a row at the same place, with rows written in between."""
    world = lives.world
    act = WAYS[way]
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)", "INSERT INTO t VALUES (0, 'x')")
    world.follow("t")
    place, ended = 0, True
    while ended:
        assert world.source.mode is CaptureMode.WAL
        world.run("UPDATE t SET b = b || 'x' WHERE a % 2 = 0")
        act(world)
        ended = lives.end_at(place)
        lives.start_again()
        world.run(f"INSERT INTO t VALUES ({place + 1}, 'between')")
        if ended:
            lives.end_at(place)
            lives.start_again()
        world.cut()
        world.engine.looked_at.clear()
        world.run(f"UPDATE t SET b = 'after' WHERE a = {place + 1}")
        world.cut()
        assert not world.cut().cut
        place += 1
    assert place > 8, "there were steps to end in"


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="headrace-faults-"))
    yield folder
    shutil.rmtree(folder)


def test_a_server_that_crashes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a cut has was on disk before; a slot that went back hands out again what is skipped."""
    monkeypatch.setattr(transition, "AGAIN", math.inf)
    with ExitStack() as stack:
        with EmbeddedServer.open(home) as server:
            worlds = [_open(stack, server, home, mode) for mode in WAL]
            for world in worlds:
                world.run("SET synchronous_commit = off")
                with stopped_wal_writer(world.application):
                    world.run("INSERT INTO t SELECT n, 'x' FROM generate_series(1, 100) n")
                    world.run("DELETE FROM t WHERE a <= 10")
                    world.follows()
            for world in worlds:
                world.run("SET synchronous_commit = on", "INSERT INTO t VALUES (1000, 'unread')")
            crash(home)
        with EmbeddedServer.open(home) as again:
            assert again.dsn == server.dsn
            for world in worlds:
                world.application = stack.enter_context(psycopg.connect(world.dsn, autocommit=True))
                Lives(world, home / world.application.info.dbname).start_again()
                assert world.follows().changed == {"t": 1}
                world.run("UPDATE t SET b = 'y' WHERE a % 10 = 0")
                assert world.follows().changed == {"t": 20}
                world.project.close()


def test_a_slot_that_the_server_gave_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds back more of the log than the server lets it; the setting to raise is told."""
    monkeypatch.setattr(transition, "AGAIN", math.inf)
    limit = ("max_slot_wal_keep_size", "1MB")
    settings = [limit if pair[0] == limit[0] else pair for pair in cluster.SETTINGS]
    monkeypatch.setattr(cluster, "SETTINGS", tuple(settings))
    with EmbeddedServer.open(home) as server, ExitStack() as stack:
        world = _open(stack, server, home, KEY)
        for n in range(4):
            world.run(f"INSERT INTO t VALUES ({n}, 'x')", "SELECT pg_switch_wal()")
        world.run("CHECKPOINT")
        database, slot = world.engine.database, world.slot
        with database.session() as connection:
            status = read_status(connection, slot)
        assert status is not None and status.lost
        upto = flushed(database)
        for act in (lambda: peeked(database, slot, upto), lambda: advance(database, slot, upto)):
            with pytest.raises(NeedsReinit) as lost:
                act()
            assert lost.value.code == "slot-lost"
        world.falls_back("was invalidated by the server")
        assert (world.source.mode_reason or "").endswith("; raise max_slot_wal_keep_size")
        world.go()
        world.project.close()


def _open(stack: ExitStack, server: EmbeddedServer, home: Path, mode: str) -> World:
    """A world in a database of its own."""
    name = mode.replace(" ", "_")
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    dsn = server.dsn_of(name)
    application = stack.enter_context(psycopg.connect(dsn, autocommit=True))
    project = headrace.connect(dsn, home=home / name)
    world = World(project, dsn, application, mode)
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    world.follow("t")
    return world
