"""Settings of capture reach the buffers of sources that exist, and lose no change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.capture import changes
from headrace.errors import Transient
from headrace.ingest import adapt
from tests.ingest.world import TRIGGER, Application, World

pytestmark = pytest.mark.postgres

BUFFER = """
SELECT c.relpersistence = 'u', s.unlogged, s.max_buffer_bytes / 1024 / 1024
FROM headrace_capture.sources s JOIN pg_class c ON c.relname = 'buffer_' || s.source
"""
ROWS = "INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 1000) n"


@pytest.fixture
def world(dsn: str, application: Application, tmp_path: Path) -> Iterator[World]:
    with headrace.connect(dsn, home=tmp_path) as project:
        world = World(project, dsn, application, TRIGGER)
        world.run("CREATE TABLE t (a integer, b text)")
        world.follow("t")
        yield world


def buffer(world: World) -> tuple[bool, int]:
    """Whether the buffer is unlogged, and its limit."""
    row = world.application.execute(BUFFER).fetchone()
    assert row is not None
    is_unlogged, recorded, limit = row
    assert is_unlogged is recorded
    return is_unlogged, limit


def test_another_limit_needs_no_cut(world: World) -> None:
    assert buffer(world) == (False, 1024)
    world.project.set("max_buffer_mb", 1)
    assert not world.cut().cut
    assert buffer(world) == (False, 1)
    for _ in range(20):
        world.run(ROWS)
    assert world.follows(copied=True).copied == {"t"}, "it was full"
    world.project.set("max_buffer_mb", 64)
    world.run("INSERT INTO t VALUES (0, 'before')")
    world.follows()
    for _ in range(20):
        world.run(ROWS)
    assert world.follows().changed == {"t": 1000}, "equal rows of a cut are one"


def test_buffers_are_converted_and_lose_nothing(world: World) -> None:
    for unlogged in (True, False):
        world.project.set("unlogged_buffers", unlogged)
        world.run(f"INSERT INTO t VALUES (1, 'before {unlogged}')")
        world.follows()
        assert buffer(world) == (unlogged, 1024)
        world.run(f"INSERT INTO t VALUES (1, 'after {unlogged}')", "UPDATE t SET a = a + 1")
        world.follows()


def test_rows_that_a_buffer_holds_are_converted_with_it(world: World) -> None:
    world.project.set("unlogged_buffers", True)
    world.run("INSERT INTO t VALUES (1, 'waits')")
    assert world.project.convert_buffers() == ("public.t",)
    assert buffer(world) == (True, 1024)
    assert world.project.convert_buffers() == ()
    assert world.follows().changed == {"t": 1}


def test_a_writer_puts_it_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapt, "AGAIN", 0.0)
    world.project.set("unlogged_buffers", True)
    with psycopg.connect(world.dsn) as writer:
        writer.execute("INSERT INTO t VALUES (1, 'open')")
        world.run("INSERT INTO t VALUES (2, 'committed')")
        assert world.follows().changed == {"t": 1}
        assert buffer(world) == (False, 1024)
        with pytest.raises(Transient) as caught:
            world.project.convert_buffers()
        assert caught.value.code == "source-locked"
    world.follows()
    assert buffer(world) == (True, 1024)


def test_writers_do_not_wait_for_a_large_buffer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut leaves it as it is; whoever asks for the conversion gets it."""
    monkeypatch.setattr("headrace.capture.adapt.LARGEST_REWRITTEN", 0)
    world.project.set("unlogged_buffers", True)
    world.project.set("max_buffer_mb", 64)
    world.run("INSERT INTO t VALUES (1, 'waits')")
    world.follows()
    assert buffer(world) == (False, 64), "the limit needs no rewriting"
    assert world.project.convert_buffers() == ("public.t",)
    assert buffer(world) == (True, 64)


def test_databases_are_asked_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(adapt, "adapt", lambda *given, **_: asked.append(given) or {})
    for number in range(3):
        world.run(f"INSERT INTO t VALUES ({number}, '')")
        world.follows()
    assert asked == []
    world.project.set("max_buffer_mb", 2)
    world.cut()
    world.cut()
    assert len(asked) == 1


def test_compact_threshold_counts_from_the_next_cut_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded: list[bool] = []
    pays = changes.pays

    def watched(*given: object) -> bool:
        folded.append(pays(*given))  # type: ignore[arg-type]
        return folded[-1]

    monkeypatch.setattr(changes, "pays", watched)
    for threshold in (100_000, 100):
        world.project.set("compact_threshold", threshold)
        world.run(ROWS, "DELETE FROM t")
        world.follows()
    assert folded == [False, True]
