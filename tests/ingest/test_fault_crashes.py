"""A process that ends in any step of ingest, and a server that does: made good in every mode.

Processes are really killed in tests/crash and in test_transition_crashes. Here the next one goes on
from where a step was left, which costs no start of a process, so that every place is tried.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.capture.announced import UNKNOWN
from headrace.capture.wal.slot import advance, read_status
from headrace.catalog.records import Status
from headrace.embedded import EmbeddedServer, cluster
from headrace.engine.steps import Announce, PinCut, Step
from headrace.errors import NeedsReinit
from headrace.ingest import copying, transition
from headrace.ingest.attempts import CaptureAttempts
from headrace.lifecycle.planned_table import TableRequest
from tests.capture.follower import Bag
from tests.capture.server_crash import crash, stopped_wal_writer
from tests.capture.wal.following import flushed, peeked
from tests.ingest.world import KEY, MODES, TRIGGER, World
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

TABLE = "CREATE TABLE t (a integer PRIMARY KEY, b text)"
ROWS = "INSERT INTO t SELECT n, 'x' FROM generate_series(1, 10) n"


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


def rewrite(world: World) -> None:
    world.together("TRUNCATE t", "INSERT INTO t SELECT n, 'again' FROM generate_series(-9, 0) n")


def stay(world: World) -> None:
    """Only rows are written."""


# What is done between two cuts; a source that left the log goes to it again.
WAYS: dict[str, Callable[[World], None]] = {
    "changes": stay,
    "a copy": rewrite,
    "away from the log": lose_the_slot,
}


@pytest.mark.parametrize(
    ("mode", "way"),
    [
        *((mode, "changes") for mode in MODES),
        (TRIGGER, "a copy"),
        (KEY, "a copy"),
        (KEY, "away from the log"),
    ],
)
def test_an_end_in_every_step(lives: Lives, way: str) -> None:
    """Twice in a row at the same place, with rows written in between."""
    world = lives.world
    act = WAYS[way]
    world.run(TABLE, "INSERT INTO t VALUES (0, 'x')")
    world.follow("t")
    mode = world.source.mode
    place, ended = 0, True
    while ended:
        assert world.source.mode is mode
        world.run("UPDATE t SET b = b || 'x' WHERE a % 2 = 0")
        act(world)
        ended = lives.end_at(place)
        lives.start_again()
        world.run(f"INSERT INTO t VALUES ({place + 1}, 'between')")
        if ended:
            lives.end_at(place)
            lives.start_again()
        world.cut()
        world.engine.part(CaptureAttempts).followed_at.clear()
        world.run(f"UPDATE t SET b = 'after' WHERE a = {place + 1}")
        world.cut()
        assert not world.cut().cut
        place += 1
    assert place > 8, "there were steps to end in"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [Announce, PinCut])
def test_an_end_around_a_pin_costs_no_copy(lives: Lives, kind: type[Step]) -> None:
    """An epoch that was announced may be pinned or not, and one that was pinned acknowledged."""
    world = lives.world
    world.run(TABLE, ROWS)
    world.follow("t")

    def end(when: str, step: Step) -> None:
        if (when, type(step)) == ("after", kind):
            raise Ended

    for n in range(2):
        world.run(f"UPDATE t SET b = 'after {n}' WHERE a = 1")
        world.engine.watch = end
        with pytest.raises(Ended):
            world.take()
        lives.start_again()
    assert not world.cut().copied
    world.run("DELETE FROM t WHERE a = 2")
    assert world.follows().changed == {"t": 1}


@pytest.mark.parametrize("mode", MODES)
def test_a_source_database_that_does_not_know_of_the_last_cut(world: World) -> None:
    """Also where nothing was written since: what was may be of another history."""
    world.run(TABLE, ROWS)
    world.follow("t")
    assert not world.cut().cut
    world.run("DELETE FROM headrace_capture.announced")
    if world.by_log:
        world.falls_back(UNKNOWN)
    else:
        assert world.cut().copied == {"t"}
    assert not world.cut().cut


def begin(world: World) -> None:
    """A table that a stream table reads and that was not copied yet."""
    world.run(TABLE, ROWS)
    put_tables(world.project, TableRequest("reader", "SELECT * FROM t"))


def arrive(world: World) -> None:
    """The source is copied, and captured in the mode of the world; its changes are followed."""
    world.cut()
    assert world.source.status is Status.ACTIVE
    if world.by_log:
        world.go()
    world.run("UPDATE t SET b = 'after' WHERE a = 1")
    assert world.follows().changed == {"t": 2}


@pytest.mark.parametrize("mode", [TRIGGER])
def test_an_end_in_every_step_of_a_first_copy(lives: Lives) -> None:
    """At any moment a source has no rows at all, or all of them. Each begins with triggers."""
    world = lives.world
    place, ended, seen = 0, True, set()
    while ended:
        begin(world)
        states: list[Bag] = [Counter()]
        for n in range(2):
            states.append(world.live(world.source))
            ended = lives.end_at(place)
            lives.start_again()
            assert world.stored(world.source) in states
            assert (world.source.status is Status.ACTIVE) is bool(world.stored(world.source))
            seen.add(world.source.status)
            world.run(f"INSERT INTO t VALUES ({100 + n}, 'between')")
        arrive(world)
        world.project.drop_stream_table("reader")
        assert not world.sources
        world.run("DROP TABLE t")
        place += 1
    assert place > 8
    assert seen == {Status.INITIALIZING, Status.ACTIVE}


@pytest.mark.parametrize("mode", [TRIGGER, KEY])
def test_an_end_in_the_middle_of_a_copy(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some parts of a table that executors copy are written, and others are not."""
    world = lives.world
    begin(world)
    folders: list[Path] = []

    def write_half(*arguments: object) -> None:
        folder = Path(str(arguments[6]).removeprefix("file://"))
        folder.mkdir()
        (folder / "part-0.parquet").write_bytes(b"half of a table")
        folders.append(folder)
        raise Ended

    with monkeypatch.context() as patched:
        patched.setattr(copying, "difference_in_memory", lambda *_: None)
        patched.setattr(copying, "copy_table", write_half)
        for n in range(2):
            with pytest.raises(Ended):
                world.take()
            lives.start_again()
            assert world.source.status is Status.INITIALIZING
            assert not world.stored(world.source)
            world.run(f"INSERT INTO t VALUES ({100 + n}, 'between')")
    assert world.cut().copied == {"t"}
    arrive(world)
    assert len(folders) == 2
    assert not any(folder.exists() for folder in folders)


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
            worlds = [_open(stack, server, home, mode) for mode in MODES]
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
    """It holds back more WAL than the server allows; the error names the setting to raise."""
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
    world.run(TABLE)
    world.follow("t")
    return world
