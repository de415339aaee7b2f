"""A daemon measures what piles up, and sends an alert when a level is crossed."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headrace
from headrace.capture.space import buffer_sizes
from headrace.catalog import Change
from headrace.daemon import monitor as monitor_module
from headrace.daemon.context import DaemonContext, ignore_report
from headrace.daemon.loop import DaemonLoop
from headrace.daemon.monitor import Monitor, late_tables
from headrace.daemon.wakeup import WakeupListener
from headrace.errors import Transient
from headrace.graph.live import LiveGraph
from headrace.ingest import transition
from headrace.observe.health import GIGABYTE
from headrace.schedule.crossings import HOLD
from headrace.schedule.state import ScheduleState
from headrace.schedule.tiers import Tier
from tests.alerts import Crossing, crossings_so_far, listen
from tests.ingest.world import KEY, TRIGGER, Application, World

pytestmark = pytest.mark.postgres

MEGABYTE = "SELECT pg_logical_emit_message(false, 'noise', repeat('n', 1 << 20))"
WATCHING = ("daemon", "daemon", "watching", "fine")


@pytest.fixture
def application(dsn: str) -> Iterator[Application]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def world(
    dsn: str, application: Application, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    monkeypatch.setattr(transition, "AGAIN", math.inf)
    with headrace.connect(dsn, home=tmp_path) as project:
        world = World(project, dsn, application, mode)
        project.set("max_buffer_mb", 1)
        world.run("CREATE TABLE t (id int PRIMARY KEY, b text)")
        world.follow("t")
        listen(application)
        yield world


class Watch:
    """A monitor whose clock is moved by hand, and what listeners hear at each of its looks."""

    def __init__(self, world: World, room: Callable[[], tuple[int, int]] | None = None) -> None:
        self.world = world
        self.monitor = Monitor(room)
        self.now = datetime.now(UTC)

    def look(self, later: timedelta = timedelta(seconds=5)) -> list[Crossing]:
        self.now += later
        engine = self.world.engine
        self.monitor.look(engine, engine.catalog.state(), self.now)
        return crossings_so_far(self.world.application)

    def in_the_end(self) -> list[Crossing]:
        """What is heard while nothing changes for longer than a level is held."""
        return [*self.look(), *self.look(HOLD), *self.look(HOLD)]


@contextmanager
def unable(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[None]:
    def fail(*_: object) -> None:
        raise Transient("connection-lost", "the server is gone")

    with monkeypatch.context() as patch:
        patch.setattr(monitor_module, name, fail)
        yield


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_change_buffer_that_grows(world: World) -> None:
    buffer = ("source", "public.t", "buffer-size")
    watch = Watch(world)
    assert watch.look() == [WATCHING]
    world.run("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 4000) n")
    assert watch.look() == [(*buffer, "warning")]
    assert watch.look() == [], "once"
    world.follows()
    assert watch.in_the_end() == [(*buffer, "fine")]


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_change_buffer_that_is_dropped_meanwhile_has_no_size(world: World) -> None:
    source = world.source
    with psycopg.connect(world.dsn) as looking:
        looking.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert buffer_sizes(looking, [source.oid])[source.oid] >= 0
        world.run(f"DROP TABLE headrace_capture.buffer_{source.oid} CASCADE")
        assert buffer_sizes(looking, [source.oid]) == {}


@pytest.mark.parametrize("mode", [KEY])
def test_a_slot_that_holds_back_the_log(world: World) -> None:
    slot = ("slot", world.slot, "slot-lag")
    world.project.set("slot_lag_warning_threshold_mb", 2)
    world.project.set("slot_lag_critical_threshold_mb", 6)
    watch = Watch(world)
    with psycopg.connect(world.dsn) as open_:
        # Whatever is done, the slot cannot move on.
        open_.execute("CREATE TABLE elsewhere (a integer)")
        assert watch.look() == [WATCHING]
        world.run(*[MEGABYTE] * 3)
        assert watch.look() == [(*slot, "warning")]
        assert watch.in_the_end() == []
        world.run(*[MEGABYTE] * 4)
        assert watch.look() == [(*slot, "critical")]
        assert watch.in_the_end() == []
        world.falls_back("MB of WAL")
        assert [code for _, _, code, _ in crossings_so_far(world.application)] == ["fell-back"]
        assert watch.in_the_end() == [(*slot, "fine")], "the slot was dropped"


@pytest.mark.parametrize("mode", [KEY])
def test_a_daemon_sends_the_level_before_it_gives_the_slot_up(world: World) -> None:
    slot = world.slot
    world.project.set("slot_lag_warning_threshold_mb", 2)
    world.project.set("slot_lag_critical_threshold_mb", 4)
    engine = world.engine
    with (
        psycopg.connect(world.dsn) as open_,
        engine.serving(0) as lease,
        WakeupListener(engine.database) as listener,
    ):
        open_.execute("CREATE TABLE elsewhere (a integer)")
        world.run(*[MEGABYTE] * 6)
        shift = DaemonContext(engine, lease, listener, ignore_report, ScheduleState())
        service = DaemonLoop(shift, LiveGraph(), threading.Event())
        service._tick(asked=False)
        service._end()
    assert crossings_so_far(world.application) == [
        WATCHING,
        ("slot", slot, "slot-lag", "critical"),
        ("source", "public.t", "fell-back", "warning"),
    ]


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_table_that_is_later_than_promised(world: World) -> None:
    late = ("table", "public.reader_1", "late")
    watch = Watch(world)

    def put(**values: Any) -> None:
        engine = world.engine
        with engine.writing() as lease:
            (table,) = engine.catalog.state().stream_tables
            engine.catalog.commit(Change(put=(replace(table, **values),)), fence=lease.fence)

    def cut() -> dict[str, int]:
        world.cut()
        source = world.source.relation
        return {source: world.engine.catalog.state().relation(source).pin.epoch}

    frontier = cut()
    put(schedule="1m", epoch=1, as_of=watch.now - timedelta(hours=3), frontier=frontier)
    assert watch.look() == [WATCHING]
    assert watch.in_the_end() == [], "it lacks nothing"
    world.run("INSERT INTO t VALUES (1, 'x')")
    frontier = cut()
    watch.now = datetime.now(UTC)
    assert watch.look() == [], "it lacks a change, but not for long"
    assert watch.look(timedelta(minutes=3)) == [(*late, "warning")]
    engine, state = world.engine, world.engine.catalog.state()
    tiers = {one.relation: Tier.FROZEN for one in state.stream_tables}
    found = late_tables(engine, state, engine.settings(state), watch.now, tiers)
    assert found[late][0] == "fine", "nobody has read it"
    (table,) = state.stream_tables
    below = replace(table, schedule="calculated")
    above = replace(below, relation="above", name="above", inputs=(below.relation,))
    above = replace(above, frontier={below.relation: below.epoch})
    for schedule, level in (("1m", "warning"), ("1h", "fine"), (None, "fine")):
        both = replace(state, stream_tables=(replace(above, schedule=schedule), below))
        found = late_tables(engine, both, engine.settings(both), watch.now)
        assert found[late][0] == level, "it is needed as often as it is read"
    assert watch.look(timedelta(minutes=3)) == []
    put(as_of=watch.now, frontier=frontier)
    assert watch.in_the_end() == [(*late, "fine")]
    put(schedule=None)
    assert watch.in_the_end() == []


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_lag_that_is_unknown_is_sent_as_late(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = ("table", "public.reader_1", "late")
    watch = Watch(world)
    assert watch.look() == [WATCHING]

    def put(**values: Any) -> None:
        engine = world.engine
        with engine.writing() as lease:
            (table,) = engine.catalog.state().stream_tables
            engine.catalog.commit(Change(put=(replace(table, **values),)), fence=lease.fence)

    put(schedule="1m", epoch=0, as_of=None, created_at=watch.now)
    assert watch.look() == [], "its first refresh is not due for long"
    assert watch.look(timedelta(minutes=3)) == [(*late, "warning")], "it was never refreshed"
    world.cut()
    source = world.source.relation
    frontier = {source: world.engine.catalog.state().relation(source).pin.epoch}
    put(epoch=1, as_of=watch.now, frontier=frontier)
    assert watch.in_the_end() == [(*late, "fine")]
    world.run("INSERT INTO t VALUES (1, 'x')")
    world.cut()
    monkeypatch.setattr(monitor_module, "availability", lambda *_: lambda *_: None)
    assert watch.look(timedelta(minutes=9)) == [(*late, "warning")], "nobody knows since when"
    put(frontier={source: world.engine.catalog.state().relation(source).pin.epoch})
    assert watch.in_the_end() == [(*late, "fine")]


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_disk_that_fills_up(world: World) -> None:
    disk = ("disk", "project", "disk-space")
    free = [50 * GIGABYTE]
    watch = Watch(world, lambda: (free[0], 100 * GIGABYTE))
    assert watch.look() == [WATCHING]
    for free[0], level in ((4 * GIGABYTE, "warning"), (GIGABYTE // 2, "critical")):
        assert watch.look() == [(*disk, level)]
    free[0] = 4 * GIGABYTE
    assert watch.in_the_end() == [(*disk, "warning")]
    free[0] = 50 * GIGABYTE
    assert watch.in_the_end() == [(*disk, "fine")]


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_folder_that_is_gone_changes_nothing(world: World) -> None:
    def gone() -> tuple[int, int]:
        raise FileNotFoundError

    watch = Watch(world, lambda: (0, GIGABYTE))
    assert watch.look() == [WATCHING, ("disk", "project", "disk-space", "critical")]
    watch.monitor._room = gone
    assert watch.in_the_end() == []


@pytest.mark.parametrize("mode", [TRIGGER])
def test_what_could_not_be_sent_is_sent_by_the_next_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(world, lambda: (0, GIGABYTE))
    with unable(monkeypatch, "notify"), pytest.raises(Transient):
        watch.look()
    assert crossings_so_far(world.application) == []
    assert watch.look() == [WATCHING, ("disk", "project", "disk-space", "critical")]
    assert watch.in_the_end() == []


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_connection_that_breaks_while_alerts_are_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> None:
        raise psycopg.errors.AdminShutdown

    watch = Watch(world)
    monkeypatch.setattr(monitor_module, "notify", cut)
    with pytest.raises(Transient) as caught:
        watch.look()
    assert caught.value.code == "connection-lost"


@pytest.mark.parametrize("mode", [TRIGGER])
def test_another_daemon_sends_what_still_holds(world: World) -> None:
    critical = ("disk", "project", "disk-space", "critical")
    for _ in range(2):
        watch = Watch(world, lambda: (0, GIGABYTE))
        assert watch.look() == [WATCHING, critical]
        assert watch.in_the_end() == []


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_database_that_fails_is_not_asked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sent of it stays as it was."""
    watch = Watch(world)
    world.run("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 4000) n")
    assert len(watch.look()) == 2
    engine = world.engine
    with engine.writing() as lease:
        home = replace(
            engine.catalog.state().database(1), failing_since=watch.now, failure="it is gone"
        )
        engine.catalog.commit(Change(put=(home,)), fence=lease.fence)
    assert crossings_so_far(world.application) == [
        ("database", "home", "ingest-failing", "critical")
    ]
    with unable(monkeypatch, "observe_sizes"):
        assert watch.in_the_end() == []
