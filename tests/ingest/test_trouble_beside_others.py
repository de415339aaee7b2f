"""Trouble with one source or its slot: it is noticed, and the others go on."""

from __future__ import annotations

import json
import threading

import psycopg
import pytest

from headrace.capture import settle
from headrace.catalog.records import CaptureMode, Status
from headrace.catalog.transition_notice import TRANSITIONS
from headrace.errors import HeadraceError, Transient, UserError
from headrace.ingest import unfollow
from headrace.ingest.attempts import CaptureAttempts
from headrace.ingest.ingest import ATTEMPTS, has_pending_changes, sources_in
from headrace.lifecycle.planned_table import TableRequest
from headrace.lifecycle.uninstall import uninstall
from tests.ingest.world import KEY, World
from tests.lifecycle.made import put_tables

pytestmark = [pytest.mark.postgres, pytest.mark.parametrize("mode", [KEY])]

A = "CREATE TABLE a (id int PRIMARY KEY, x int)"
B = "CREATE TABLE b (id int PRIMARY KEY)"
TRIGGER, WAL = CaptureMode.TRIGGER, CaptureMode.WAL


def modes(world: World) -> dict[str, CaptureMode]:
    return {name: source.mode for name, source in world.sources.items()}


def captured(world: World) -> None:
    """Both tables by triggers, and requested to be read from the WAL."""
    put_tables(
        world.project, TableRequest("ra", "SELECT * FROM a"), TableRequest("rb", "SELECT * FROM b")
    )
    world.cut()
    world.project.set("cdc_mode", "auto")
    world.engine.part(CaptureAttempts).followed_at.clear()


def test_a_publication_that_was_changed_is_noticed_before_another_source_is_published(
    world: World,
) -> None:
    world.run(A, "CREATE TABLE b (id int)", "INSERT INTO a VALUES (1, 1)")
    captured(world)
    world.cut()
    assert modes(world) == {"a": WAL, "b": TRIGGER}
    world.run("ALTER TABLE b ADD PRIMARY KEY (id)")
    world.cut()
    world.engine.part(CaptureAttempts).followed_at.clear()
    world.run(
        "ALTER PUBLICATION headrace SET (publish = 'insert')",
        "UPDATE a SET x = 2",
        "ALTER PUBLICATION headrace SET (publish = 'insert, update, delete, truncate')",
    )
    taken = world.cut()
    assert "a" in taken.copied
    assert world.sources["a"].mode_reason == "the options of the publication were changed"


def test_commits_that_are_not_on_disk_yet_are_pending(world: World) -> None:
    world.run(A)
    world.follow("a")
    world.run("SET synchronous_commit = off")
    for number in range(20):
        world.run(f"INSERT INTO a VALUES ({number}, 1)")
        state = world.engine.catalog.state()
        assert has_pending_changes(world.engine, state, 1, sources_in(state, 1))
        world.take()


def test_one_may_ask_the_slot_while_another_reads_it(world: World) -> None:
    world.run(A)
    world.follow("a")
    done = threading.Event()
    failures: list[HeadraceError] = []
    state = world.engine.catalog.state()

    def ask() -> None:
        while not done.is_set():
            try:
                has_pending_changes(world.engine, state, 1, sources_in(state, 1))
            except HeadraceError as error:
                failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for number in range(4):
            first = number * 5000
            world.run(f"INSERT INTO a SELECT g, 1 FROM generate_series({first}, {first + 4999}) g")
            assert world.cut().changed == {"a": 5000}
    finally:
        done.set()
        thread.join()
    assert not failures
    assert world.source.mode is WAL


def test_a_busy_table_keeps_no_other_from_falling_back(world: World) -> None:
    world.run(A, B)
    world.follow("a", "b")
    world.run(f"LISTEN {TRANSITIONS}")
    with psycopg.connect(world.dsn) as writer:
        writer.execute("INSERT INTO a VALUES (7, 7)")
        world.run(f"SELECT pg_drop_replication_slot('{world.slot}')", "INSERT INTO b VALUES (1)")
        world.take()
        a, b = world.sources["a"], world.sources["b"]
        assert (a.status, b.status, b.mode) == (Status.SUSPENDED, Status.ACTIVE, TRIGGER)
        alerts = world.application.notifies(timeout=60, stop_after=2)
        assert [json.loads(one.payload)["source"] for one in alerts] == ["public.a", "public.b"]
        with pytest.raises(Transient) as caught:
            world.take(["a"])
        assert caught.value.code == "source-locked"
    assert world.take(["a"]).copied == {"a"}
    world.cut()


def test_a_writer_that_is_in_the_way_of_one_copy_keeps_no_other_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has recorded reads otherwise by now, so that the copy has to wait for its end."""
    monkeypatch.setattr(settle, "LOCK_MILLISECONDS", 50)
    world.run("CREATE TYPE mood AS ENUM ('good')", "CREATE TABLE c (m mood)", A, B)
    put_tables(world.project, *(TableRequest(f"r{one}", f"SELECT * FROM {one}") for one in "abc"))
    world.cut()
    with psycopg.connect(world.dsn) as writer:
        writer.execute("INSERT INTO c VALUES ('good')")
        world.run("ALTER TYPE mood RENAME VALUE 'good' TO 'fine'", "TRUNCATE b")
        world.run("INSERT INTO a VALUES (1, 1)", "INSERT INTO b VALUES (1)")
        taken = world.cut()
        assert (taken.copied, taken.changed) == ({"b"}, {"a": 1})
        stopped = world.sources["c"]
        assert stopped.status is Status.SUSPENDED
        assert stopped.reason == "a transaction that wrote to public.c is still open"
        with pytest.raises(Transient) as caught:
            world.take(["c"])
        assert caught.value.code == "source-locked"
    assert world.cut(["c"]).copied == {"c"}
    assert {one.status for one in world.sources.values()} == {Status.ACTIVE}


def test_a_table_that_is_locked_keeps_no_other_waiting(world: World) -> None:
    world.run(A, B)
    put_tables(world.project, *(TableRequest(f"r{one}", f"SELECT * FROM {one}") for one in "ab"))
    world.cut()
    world.run("VACUUM FULL a", "TRUNCATE b", "INSERT INTO b VALUES (1)")
    with world.engine.database.session() as session:
        session.execute("SET lock_timeout = '100ms'")  # the cut is lent the same one
    with psycopg.connect(world.dsn) as owner:
        owner.execute("LOCK TABLE a IN ACCESS EXCLUSIVE MODE")
        assert world.take().copied == {"b"}
        assert world.sources["a"].status is Status.SUSPENDED
        assert world.sources["a"].reason == "public.a is locked by another session"
    assert world.cut(["a"]).copied == {"a"}


def test_many_tables_that_are_locked_keep_no_other_waiting(world: World) -> None:
    """They are found one after the other, each by another try."""
    locked = [f"a{number}" for number in range(ATTEMPTS + 1)]
    world.run(*(f"CREATE TABLE {name} (id int)" for name in locked), B)
    put_tables(
        world.project, *(TableRequest(f"r{one}", f"SELECT * FROM {one}") for one in [*locked, "b"])
    )
    world.cut()
    world.run(*(f"VACUUM FULL {name}" for name in locked), "INSERT INTO b VALUES (1)")
    with world.engine.database.session() as session:
        session.execute("SET lock_timeout = '50ms'")  # the cut is lent the same one
    with psycopg.connect(world.dsn) as owner:
        owner.execute(f"LOCK TABLE {', '.join(locked)} IN ACCESS EXCLUSIVE MODE")
        taken = world.take()
        assert (taken.copied, taken.changed) == (frozenset(), {"b": 1})
        stopped = {one.name for one in world.sources.values() if one.status is Status.SUSPENDED}
        assert stopped == {*locked}
    assert world.cut(locked).copied == {*locked}


def test_a_busy_table_is_read_from_the_log_until_its_triggers_can_be_made(world: World) -> None:
    world.run(A, B)
    world.follow("a", "b")
    world.project.set("cdc_mode", "trigger")
    with psycopg.connect(world.dsn) as writer:
        writer.execute("INSERT INTO a VALUES (7, 7)")
        world.take()
        assert modes(world) == {"a": WAL, "b": TRIGGER}
        assert {one.status for one in world.sources.values()} == {Status.ACTIVE}
        assert not world.take().cut
    world.cut()
    assert modes(world) == {"a": TRIGGER, "b": TRIGGER}


def test_a_lost_slot_is_recreated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a DBA owns the publication: the slot can be dropped, the publication cannot."""
    world.run(A)
    world.follow("a")

    def refuse(*_: object) -> None:
        raise UserError("capture-not-set-up", "the role may not")

    with monkeypatch.context() as patched:
        patched.setattr(unfollow, "remove_from_publication", refuse)
        world.project.set("cdc_mode", "trigger")
        world.cut()
        assert world.source.mode is TRIGGER
        world.project.set("cdc_mode", "auto")
        world.engine.part(CaptureAttempts).followed_at.clear()
        world.run("INSERT INTO a VALUES (1, 1)")
        world.cut()
    world.run("INSERT INTO a VALUES (2, 2)")
    assert world.cut().changed == {"a": 1}
    assert world.source.mode is WAL


def test_a_suspended_source_holds_back_no_wal(world: World) -> None:
    world.run("CREATE TABLE a (id int PRIMARY KEY, t date)", B)
    world.follow("a", "b")
    world.run("INSERT INTO a VALUES (1, 'infinity')")
    world.take()
    assert world.sources["a"].status is Status.SUSPENDED
    assert modes(world) == {"a": TRIGGER, "b": WAL}
    published = world.application.execute("SELECT tablename FROM pg_publication_tables").fetchall()
    assert published == [("b",)]
    world.run("DELETE FROM a")
    assert world.take(["a"]).copied == {"a"}
    world.cut()


def test_a_table_that_cannot_be_published_keeps_no_other_from_going(world: World) -> None:
    world.run(A, B)
    captured(world)
    with psycopg.connect(world.dsn) as other:
        other.execute("LOCK TABLE b IN SHARE UPDATE EXCLUSIVE MODE")
        world.cut()
    assert modes(world) == {"a": WAL, "b": TRIGGER}
    assert "locked" in (world.sources["b"].mode_reason or "")


def test_uninstalling_while_a_table_is_locked(world: World) -> None:
    world.run(A, "CREATE TABLE b (id int)")
    captured(world)
    world.cut()
    with psycopg.connect(world.dsn) as other:
        other.execute("LOCK TABLE b IN ROW EXCLUSIVE MODE")
        timer = threading.Timer(1.2, other.commit)
        timer.start()
        uninstall(world.engine, keep_tables=False)
        timer.join()
    for catalog in ("pg_replication_slots", "pg_publication"):
        left = world.application.execute(f"SELECT count(*) FROM {catalog}").fetchone()
        assert left == (0,)
