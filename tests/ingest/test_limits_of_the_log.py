"""What is let go: ways to the log that take too long, slots and buffers that hold too much."""

from __future__ import annotations

import psycopg
import pytest

from headrace.capture.wal.slot import read_status
from headrace.catalog.records import CaptureMode, Status
from headrace.ingest.attempts import CaptureAttempts
from headrace.lifecycle.planned_table import TableRequest
from tests.alerts import heard_so_far, listen
from tests.ingest.wal_objects import LEFT
from tests.ingest.world import KEY, TRIGGER, WAL, World
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

MEGABYTE = "SELECT pg_logical_emit_message(false, 'noise', repeat('n', 1 << 20))"


@pytest.mark.parametrize("mode", [KEY])
def test_a_source_that_takes_too_long(world: World) -> None:
    """It stays with its triggers and is not copied; others go on, and later it is tried again."""
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    world.run("CREATE TABLE u (a integer PRIMARY KEY)")
    world.follow("u")
    put_tables(world.project, TableRequest("of_t", "SELECT * FROM t"))
    assert world.cut().copied == {"t"}
    with psycopg.connect(world.dsn) as early:
        early.execute("INSERT INTO t VALUES (1, 'early')")
        world.engine.part(CaptureAttempts).followed_at.clear()
        world.run("INSERT INTO t VALUES (2, 'meanwhile')")
        assert world.cut().changed["t"] == 1
        assert world.sources["t"].mode is CaptureMode.TRANSITIONING
        world.project.set("wal_transition_timeout", 0.001)
        world.run("INSERT INTO t VALUES (3, 'too late')")
        taken = world.cut()
        assert (taken.copied, taken.changed["t"]) == (frozenset(), 1)
        late = world.sources["t"]
        assert (late.mode, late.followed) == (CaptureMode.TRIGGER, None)
        assert "did not end in 0.001 s" in (late.mode_reason or "")
        assert world.sources["u"].mode is CaptureMode.WAL
        early.commit()
    assert world.cut().changed["t"] == 1
    world.project.set("wal_transition_timeout", 300)
    world.go()
    world.run("UPDATE t SET b = 'by the log'")
    assert world.follows().changed == {"t": 6, "u": 0}


@pytest.mark.parametrize("mode", WAL)
def test_a_slot_that_holds_back_too_much(world: World) -> None:
    """The daemon drops it with its WAL, although we wrote nothing, and sends an alert."""
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    listen(world.application)
    world.follow("t")
    world.project.set("slot_lag_warning_threshold_mb", 1)
    world.project.set("slot_lag_critical_threshold_mb", 4)
    with psycopg.connect(world.dsn) as open_:
        # Whatever is done, the slot cannot move on.
        open_.execute("CREATE TABLE elsewhere (a integer)")
        world.run(*[MEGABYTE] * 6)
        slot = world.slot
        world.falls_back("MB of WAL")
        with world.engine.database.session() as connection:
            assert read_status(connection, slot) is None
    assert world.application.execute(LEFT).fetchall() == []
    (said,) = heard_so_far(world.application)
    assert said["code"] == "fell-back" and "held back" in said["message"]
    assert world.source.status is Status.ACTIVE
    world.run("INSERT INTO t VALUES (1, 'x')")
    assert world.cut().changed == {"t": 1}
    world.project.set("slot_lag_critical_threshold_mb", 1024)
    world.go()


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_buffer_that_is_full(world: World) -> None:
    """It is emptied, the source copied once, and an alert says so."""
    world.project.set("max_buffer_mb", 1)
    world.run("CREATE TABLE t (a integer, b text)")
    listen(world.application)
    world.follow("t")
    for _ in range(20):
        world.run("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 1000) n")
    assert world.follows(copied=True).copied == {"t"}
    assert heard_so_far(world.application) == [
        {
            "about": "source",
            "name": "public.t",
            "level": "warning",
            "code": "buffer-full",
            "message": "copied again: the buffer grew beyond max_buffer_mb",
        }
    ]
    world.run("INSERT INTO t VALUES (0, '')")
    assert world.follows().changed == {"t": 1}
    assert heard_so_far(world.application) == []
