"""A daemon has the log streamed: it hears of changes, decodes them once, and releases the slot.

No Spark: only what the daemon's own thread does when it takes in cuts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.capture.wal import slot_reader as log
from headrace.capture.wal.slot import SlotStatus, read_status
from headrace.capture.wal.streaming_reader import StreamingReader
from headrace.catalog.records import CaptureMode
from headrace.daemon.context import DaemonContext
from headrace.daemon.ingester import SourceIngesters
from headrace.daemon.wakeup import WakeupListener
from headrace.ingest import transition
from headrace.ingest.from_wal import slot_reader_of
from headrace.ingest.ingest import has_pending_changes, sources_in
from headrace.lifecycle.planned_table import TableRequest
from headrace.schedule.state import ScheduleState
from tests.capture.wal.streaming import PATIENCE, eventually
from tests.ingest.world import END_STREAMS, KEY, World
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres


class Watch:
    """A daemon's thread that takes in, and nothing else, over one source in mode WAL."""

    def __init__(self, world: World, shift: DaemonContext, messages: list[str]) -> None:
        self.world = world
        self.shift = shift
        self.messages = messages
        self.intakes = SourceIngesters(shift)

    def take(self, *, thorough: bool = False) -> bool:
        return self.intakes.take(self.world.engine.catalog.state(), thorough=thorough)

    @property
    def log(self) -> StreamingReader:
        known = self.world.engine.catalog.state().database(1)
        assert known.following is not None
        found = slot_reader_of(self.world.engine, known, known.following)
        assert isinstance(found, StreamingReader)
        return found

    @property
    def status(self) -> SlotStatus:
        with self.world.engine.database.session() as connection:
            found = read_status(connection, self.world.slot)
        assert found is not None
        return found

    def opened(self) -> None:
        """Wait until there is a stream."""
        eventually(lambda: (self.log.received() or 0) > 0, "streaming")

    def assert_same(self) -> None:
        for source in self.world.sources.values():
            assert source.mode is CaptureMode.WAL
            assert self.world.stored(source) == self.world.live(source)


@pytest.fixture
def watch(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    monkeypatch.setattr(transition, "AGAIN", math.inf)
    with (
        psycopg.connect(dsn, autocommit=True) as application,
        headrace.connect(dsn, home=tmp_path) as project,
    ):
        world = World(project, dsn, application, KEY)
        world.streams = False
        world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)")
        world.follow("t")
        with serving(world) as watch:
            yield watch


@contextmanager
def serving(world: World) -> Iterator[Watch]:
    engine = world.engine
    with engine.serving(10) as lease, WakeupListener(engine.database) as listener:
        messages: list[str] = []
        watch = Watch(
            world,
            DaemonContext(engine, lease, listener, messages.append, ScheduleState()),
            messages,
        )
        try:
            yield watch
        finally:
            watch.intakes.close()


def test_it_hears_of_changes_and_asks_for_nothing(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has the server decode again, or move the slot, but the stream."""

    def unasked(*_: object) -> None:
        raise AssertionError("the slot was asked for")

    world = watch.world
    world.run("INSERT INTO t VALUES (0, 'before')")
    assert watch.take(thorough=True), "what there was is peeked at"
    watch.opened()
    first = watch.log.stream
    for name in ("peek", "peek_transactions", "advance"):
        monkeypatch.setattr(log, name, unasked)
    for n in range(1, 4):
        assert not watch.take()
        world.run(f"INSERT INTO t VALUES ({n}, 'x')")
        for _ in range(1000):
            # Long pauses are ended by what arrives.
            watch.shift.listener.wait(PATIENCE)
            if watch.take():
                break
        watch.assert_same()
        assert world.rows("t") == n + 1
    assert watch.log.stream is first and watch.log.reason is None


def test_the_slot_is_never_further_than_recorded(watch: Watch) -> None:
    """Each cut moves it, by the stream, to what was recorded before."""
    world = watch.world
    watch.take(thorough=True)
    watch.opened()
    pid = watch.status.active_pid
    assert pid is not None
    for n in range(3):
        world.run(f"INSERT INTO t VALUES ({n}, 'x')")
        assert watch.take(thorough=True)
        following = world.engine.catalog.state().database(1).following
        assert following is not None
        recorded = following.acknowledged
        eventually(lambda end=recorded: watch.status.confirmed == end, "moving")
    assert watch.status.active_pid == pid


def test_a_stream_that_ends(watch: Watch) -> None:
    """Nothing is lost: it is peeked at until the next look around begins another one."""
    world = watch.world
    watch.take(thorough=True)
    watch.opened()
    first = watch.log.stream
    assert first is not None
    world.run("INSERT INTO t VALUES (1, 'streamed')")
    world.run(END_STREAMS, "INSERT INTO t VALUES (2, 'peeked at')")
    eventually(lambda: first.failure is not None, "noticing")
    watch.take(thorough=True)
    watch.assert_same()
    assert world.rows("t") == 2
    (message,) = watch.messages
    assert "not streamed" in message and "terminating connection" in message

    def begun() -> bool:
        watch.take(thorough=True)
        stream = watch.log.stream
        return stream is not None and stream is not first and stream.reached > 0

    eventually(begun, "streaming again")
    world.run("UPDATE t SET b = 'streamed again'")
    watch.take(thorough=True)
    watch.assert_same()


def test_a_source_that_goes_to_the_log_gets_another_stream(watch: Watch) -> None:
    """The one before began when the table was not published."""
    world = watch.world
    watch.take(thorough=True)
    watch.opened()
    first = watch.log.stream
    world.run("CREATE TABLE u (a integer PRIMARY KEY)", "INSERT INTO t VALUES (1, 'x')")
    put_tables(world.project, TableRequest("reader_of_u", "SELECT * FROM u"))
    assert watch.take(thorough=True)
    assert world.sources["u"].mode is CaptureMode.TRIGGER
    assert watch.log.stream is first
    assert watch.take(thorough=True)
    assert world.sources["u"].mode is CaptureMode.WAL
    second = watch.log.stream
    assert second is not None and second is not first
    world.run("INSERT INTO u VALUES (1)", "INSERT INTO t VALUES (2, 'y')")
    assert watch.take(thorough=True)
    watch.assert_same()
    assert watch.log.stream is second and watch.log.reason is None


def test_an_end_of_serving_frees_the_slot(watch: Watch) -> None:
    world = watch.world
    watch.take(thorough=True)
    watch.opened()
    watch.intakes.close()
    eventually(lambda: watch.status.active_pid is None, "letting go")
    world.run("INSERT INTO t VALUES (1, 'x')")
    assert world.follows().changed == {"t": 1}, "by hand"


def test_leaving_the_log_ends_the_stream(watch: Watch) -> None:
    """The slot that it holds can be dropped."""
    world = watch.world
    watch.take(thorough=True)
    watch.opened()
    slot = world.slot
    world.run("INSERT INTO t VALUES (1, 'x')")
    world.run("ALTER TABLE t REPLICA IDENTITY NOTHING")
    assert watch.take(thorough=True)
    assert world.source.mode is CaptureMode.TRIGGER
    assert world.stored(world.source) == world.live(world.source)
    with world.engine.database.session() as connection:
        assert read_status(connection, slot) is None
    assert world.engine.catalog.state().database(1).following is None


def test_others_may_probe_for_pending_changes_meanwhile(
    watch: Watch, dsn: str, tmp_path: Path
) -> None:
    """Whoever waits for a fresh table asks from another process, which cannot have the slot."""
    world = watch.world
    watch.take(thorough=True)
    watch.opened()
    with headrace.connect(dsn, home=tmp_path) as other:

        def asked() -> bool:
            state = other._engine.catalog.state()
            return has_pending_changes(other._engine, state, 1, sources_in(state, 1))

        world.run("INSERT INTO t VALUES (1, 'x')")
        assert asked()
        watch.take(thorough=True)
        watch.assert_same()
        assert not asked()
        world.run("CREATE TABLE elsewhere (a integer)", "INSERT INTO elsewhere VALUES (1)")
        eventually(lambda: not asked(), "hearing that nothing of ours was written")
