"""Every way in which a stream table or a source stops: one alert, and one when it goes on."""

from __future__ import annotations

import json

import psycopg
import pytest

from headrace.catalog.transition_notice import TRANSITIONS
from headrace.errors import HeadraceError, UserError
from headrace.lifecycle.planned_table import TableRequest
from headrace.refresh import run as sweep
from tests.alerts import Crossing, crossings_so_far, heard_so_far, listen
from tests.ingest.world import KEY, MODES, TRIGGER, World
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

SECRET = "4711-row-value"


def table(level: str, code: str = "suspended", name: str = "reader_1") -> Crossing:
    return ("table", f"public.{name}", code, level)


def source(level: str) -> Crossing:
    return ("source", "public.t", "suspended", level)


@pytest.fixture
def followed(world: World) -> World:
    world.run(
        "CREATE TABLE t (id int PRIMARY KEY, b text, c text)",
        f"INSERT INTO t VALUES (1, '{SECRET}', 'x')",
    )
    world.follow("t")
    listen(world.application)
    return world


@pytest.mark.parametrize("mode", MODES)
def test_a_used_column_that_is_dropped(followed: World) -> None:
    put_tables(followed.project, TableRequest("of_c", "SELECT id, c FROM t"))
    followed.run("ALTER TABLE t DROP COLUMN b")
    followed.take()
    assert table("critical") in (heard := crossings_so_far(followed.application))
    assert [one for one in heard if one[1] == "public.of_c"] == []
    followed.run("INSERT INTO t VALUES (2, 'y')")
    followed.take()
    assert crossings_so_far(followed.application) == [], "once"
    followed.project.drop_stream_table("reader_1")
    assert crossings_so_far(followed.application) == [table("fine")]


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_source_that_is_dropped(followed: World) -> None:
    followed.run("DROP TABLE t")
    followed.take()
    assert crossings_so_far(followed.application) == [source("critical"), table("critical")]
    followed.project.drop_stream_table("reader_1")
    assert sorted(crossings_so_far(followed.application)) == [source("fine"), table("fine")]


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_source_that_is_locked_when_it_has_to_be_copied(followed: World) -> None:
    with psycopg.connect(followed.dsn) as holder:
        followed.run("TRUNCATE t")
        holder.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        followed.take()
        assert crossings_so_far(followed.application) == [source("critical"), table("critical")]
        followed.take()
        assert crossings_so_far(followed.application) == []
    followed.cut(retry=["t"])
    assert sorted(crossings_so_far(followed.application)) == [source("fine"), table("fine")]


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_value_that_cannot_be_stored_is_not_quoted(world: World) -> None:
    world.run("CREATE TABLE t (id int, n numeric)")
    world.follow("t")
    listen(world.application)
    world.run("INSERT INTO t VALUES (4711, 'infinity')")
    world.take()
    heard = heard_so_far(world.application)
    assert [one["level"] for one in heard] == ["critical", "critical"]
    assert "nfinity" in (world.source.reason or ""), "the reason quotes it"
    assert "nfinity" not in str(heard) and "4711" not in str(heard)


@pytest.mark.parametrize("mode", [TRIGGER])
def test_by_hand(followed: World) -> None:
    followed.project.suspend("reader_1")
    assert crossings_so_far(followed.application) == [table("critical")]
    followed.project.resume("reader_1")
    assert crossings_so_far(followed.application) == [table("fine")]


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_refresh_and_a_rebuild_that_fail(
    followed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a command, without a daemon."""

    def fail(*_: object, **__: object) -> None:
        raise UserError("query-failed", f"invalid input syntax for type integer: {SECRET}")

    followed.run("CREATE VIEW v AS SELECT id FROM t")
    put_tables(followed.project, TableRequest("of_v", "SELECT id FROM v"))
    followed.run(f"INSERT INTO t VALUES (2, '{SECRET}')")
    with monkeypatch.context() as failing:
        failing.setattr(sweep, "advance", fail)
        for _ in range(2):
            with pytest.raises(HeadraceError):
                followed.project.refresh("of_v")
    heard = heard_so_far(followed.application)
    assert [(one["name"], one["code"]) for one in heard] == [("public.of_v", "error")]
    assert SECRET not in str(heard)
    followed.run("DROP VIEW v")
    with pytest.raises(HeadraceError):
        followed.project.refresh("of_v")
    assert crossings_so_far(followed.application) == [
        table("critical", "suspended", "of_v"),
        table("fine", "error", "of_v"),
    ]


@pytest.mark.parametrize("mode", [KEY])
def test_a_transition_names_the_slot(followed: World) -> None:
    followed.run(f"LISTEN {TRANSITIONS}")
    slot = followed.slot
    followed.run(f"SELECT pg_drop_replication_slot('{slot}')")
    followed.falls_back("was dropped")
    followed.go()
    followed.run("SELECT 1")
    heard = [
        json.loads(one.payload)
        for one in followed.application.notifies(timeout=0)
        if one.channel == TRANSITIONS
    ]
    again = followed.slot
    assert [(one["from"], one["to"], one["slot"]) for one in heard] == [
        ("WAL", "TRIGGER", slot),
        ("TRIGGER", "TRANSITIONING", again),
        ("TRANSITIONING", "WAL", again),
    ]
