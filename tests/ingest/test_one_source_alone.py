"""A source that cannot be taken in stops those that read it, and goes on once that is mended."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.capture.setup import set_up
from headrace.catalog.records import Status, StreamTable
from headrace.daemon.context import DaemonContext
from headrace.daemon.ingester import SourceIngester
from headrace.daemon.wakeup import WakeupListener
from headrace.embedded import EmbeddedServer
from headrace.engine.steps import CopySource, Step
from headrace.errors import UserError
from headrace.ingest import transition
from headrace.ingest.ingest import ingest_database
from headrace.lifecycle.planned_table import TableRequest
from headrace.schedule.state import ScheduleState
from headrace.source.introspect import inspect
from tests.alerts import crossings_so_far, listen
from tests.ingest.world import TRIGGER, Application, World
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

TABLES = (
    "CREATE TABLE a (id int PRIMARY KEY, x int, y int)",
    "CREATE TABLE b (id int PRIMARY KEY)",
    "INSERT INTO a VALUES (1, 1, 1)",
)


@pytest.fixture
def world(
    server: EmbeddedServer,
    dsn: str,
    application: Application,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """A role with the least rights; the application stands for the DBA."""
    monkeypatch.setattr(transition, "AGAIN", math.inf)
    for statement in TABLES:
        application.execute(statement)
    database = application.info.dbname
    application.execute("CREATE ROLE least LOGIN")
    application.execute(
        f'GRANT CREATE ON DATABASE "{database}" TO least; GRANT ALL ON SCHEMA public TO least;'
        "GRANT SELECT ON a, b TO least"
    )
    try:
        with headrace.connect(server.dsn_of(database, "least"), home=tmp_path) as project:
            application.execute(project.cdc_sql("a", "b"))
            yield World(project, dsn, application, TRIGGER)
    finally:
        application.execute("DROP OWNED BY least CASCADE; DROP ROLE least")


def captured(world: World) -> None:
    put_tables(
        world.project,
        TableRequest("reads_x", "SELECT id, x FROM a"),
        TableRequest("reads_y", "SELECT id, y FROM a"),
        TableRequest("reads_b", "SELECT id FROM b"),
    )
    world.cut()


def tables(world: World) -> dict[str, StreamTable]:
    return {table.name: table for table in world.engine.catalog.state().stream_tables}


def statuses(world: World) -> list[Status]:
    found = tables(world)
    return [found[name].status for name in ("reads_x", "reads_y", "reads_b")]


def test_a_source_that_waits_for_a_dba_stops_its_readers_only(world: World) -> None:
    captured(world)
    world.run("ALTER TABLE a ALTER x TYPE text", "INSERT INTO b VALUES (1)")
    assert world.cut().changed == {"b": 1}
    assert world.rows("b") == 1
    assert statuses(world) == [Status.SUSPENDED, Status.SUSPENDED, Status.ACTIVE]
    assert "may not set up change capture of public.a" in (tables(world)["reads_y"].reason or "")
    world.run("INSERT INTO a VALUES (2, 'two', 2)", "INSERT INTO b VALUES (2)")
    assert world.cut().changed == {"b": 1}
    with pytest.raises(UserError) as caught:
        world.take(retry=["a"])
    assert caught.value.code == "capture-not-set-up"


def test_one_script_is_enough(world: World) -> None:
    """What it records is enough for the readers that go on, and for those that are rebuilt."""
    captured(world)
    world.run("ALTER TABLE a ALTER x TYPE text")
    with pytest.raises(UserError) as caught:
        world.take(retry=["a"])
    world.take()
    script = world.project.cdc_sql()
    assert (caught.value.hint or "").endswith(script.partition("\n")[2])
    world.run(script)
    assert world.cut(retry=["a"]).copied == {"a"}
    assert statuses(world) == [Status.SUSPENDED, Status.ACTIVE, Status.ACTIVE]
    assert "changed its type" in (tables(world)["reads_x"].reason or "")
    database = world.engine.database
    with database.session() as connection:
        (whole,) = inspect(connection, [world.sources["a"].oid]).values()
    assert not set_up(database, whole), "a rebuild finds all columns captured"
    world.run("INSERT INTO a VALUES (2, 'two', 2)", "ALTER TABLE a ADD z int")
    assert world.cut().changed["a"] == 1
    assert world.project.cdc_sql().startswith("-- Nothing is missing")


def test_buffers_that_a_dba_owns_are_converted_by_the_dba(world: World) -> None:
    put_tables(world.project, TableRequest("reads_x", "SELECT id, x FROM a"))
    world.cut()
    world.project.set("unlogged_buffers", True)
    world.project.set("max_buffer_mb", 2)
    world.run("INSERT INTO a VALUES (2, 2, 2)")
    assert not world.follows().copied, "it goes on as it is"
    with pytest.raises(UserError) as caught:
        world.project.convert_buffers()
    assert caught.value.code == "capture-not-set-up"
    world.run((caught.value.hint or "").partition("\n")[2])
    assert world.project.convert_buffers() == ()
    world.run("INSERT INTO a VALUES (3, 3, 4711)")
    buffer = f"headrace_capture.buffer_{world.source.oid}"
    (row,) = world.application.execute(f"SELECT * FROM {buffer}").fetchall()
    assert 4711 in row, "columns that nobody reads yet are recorded as before"
    assert world.follows().changed == {"a": 1}


def test_a_right_to_read_that_is_taken_away_stops_one_source(world: World) -> None:
    captured(world)
    listen(world.application)
    world.run("REVOKE SELECT ON a FROM least", "TRUNCATE a", "INSERT INTO b VALUES (1)")
    assert world.take().changed == {"b": 1}
    assert statuses(world) == [Status.SUSPENDED, Status.SUSPENDED, Status.ACTIVE]
    assert "may not read public.a" in (tables(world)["reads_x"].reason or "")
    stopped = ["public.a", "public.reads_x", "public.reads_y"]
    raised = crossings_so_far(world.application)
    assert sorted((name, level) for _, name, _, level in raised) == [
        (name, "critical") for name in stopped
    ]
    world.run("GRANT SELECT ON a TO least")
    assert world.cut(retry=["a"]).copied == {"a"}
    assert statuses(world) == [Status.ACTIVE] * 3
    cleared = crossings_so_far(world.application)
    assert sorted((name, level) for _, name, _, level in cleared) == [
        (name, "fine") for name in stopped
    ]


# Why a table must not be copied although its capture works, with the error and its end.
FORBIDDEN = {
    "permission-denied": ("REVOKE SELECT ON a FROM least", "GRANT SELECT ON a TO least"),
    "row-security": (
        "ALTER TABLE a ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE a DISABLE ROW LEVEL SECURITY",
    ),
    "untrusted-object": (
        "CREATE FUNCTION trap(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1';"
        "CREATE ROLE trapper; ALTER FUNCTION trap OWNER TO trapper;"
        "CREATE INDEX trapped ON a (trap(id))",
        "DROP FUNCTION trap CASCADE; DROP ROLE trapper",
    ),
}


@pytest.mark.parametrize("code", FORBIDDEN)
def test_a_copy_that_is_forbidden_is_left_out_or_an_error(world: World, code: str) -> None:
    """An error for who asked for it; nothing of it is read, and others go on."""
    captured(world)
    forbid, allow = FORBIDDEN[code]
    world.run(forbid)
    try:
        world.run("INSERT INTO a VALUES (2, 2, 2)", "INSERT INTO b VALUES (1)")
        assert world.take().changed == {"b": 1}
        assert statuses(world) == [Status.SUSPENDED, Status.SUSPENDED, Status.ACTIVE]
        before = world.sources["a"]
        world.run("INSERT INTO b VALUES (2)")
        with pytest.raises(UserError) as refused:
            world.take(retry=["a"])
        assert refused.value.code == code
        tried = tried_without_need(world, "a")
        assert [type(step) for step in tried if isinstance(step, CopySource)] == []
        assert world.rows("b") == 2
        assert world.sources["a"] == before
        assert statuses(world) == [Status.SUSPENDED, Status.SUSPENDED, Status.ACTIVE]
    finally:
        world.run(allow)
    assert world.cut(retry=["a"]).copied == {"a"}
    assert statuses(world) == [Status.ACTIVE] * 3


@pytest.mark.parametrize("code", FORBIDDEN)
def test_a_new_source_that_is_forbidden_meanwhile(world: World, code: str) -> None:
    """Between the check of a query and the first copy: whoever asked gets the error."""
    put_tables(world.project, TableRequest("reads_x", "SELECT id, x FROM a"))
    forbid, allow = FORBIDDEN[code]
    world.run(forbid)
    try:
        with pytest.raises(UserError) as refused:
            world.take(retry=["a"])
        assert refused.value.code == code
        assert world.sources["a"].status is Status.INITIALIZING
    finally:
        world.run(allow)
    assert world.cut(retry=["a"]).copied == {"a"}


def tried_without_need(world: World, name: str) -> list[Step]:
    """Try to copy a source as the daemon does by itself; the steps that were done."""
    engine, state = world.engine, world.engine.catalog.state()
    world.steps.clear()
    retry = frozenset({world.sources[name].relation})
    with engine.writing() as lease:
        ingest_database(engine, state, 1, lease.fence, retry=retry, required=False)
    return [step for when, step in world.steps if when == "after"]


@pytest.mark.parametrize("mended", ["script", "right", "lock"])
def test_the_daemon_tries_again_as_soon_as_the_cause_may_be_gone(
    world: World, mended: str, dsn: str
) -> None:
    captured(world)
    holder = world.application.__class__.connect(dsn)
    try:
        match mended:
            case "script":
                world.run("ALTER TABLE a ALTER x TYPE text")
            case "right":
                world.run("TRUNCATE a", "REVOKE SELECT ON a FROM least")
            case "lock":
                world.run("TRUNCATE a")
                holder.execute("LOCK TABLE a IN ACCESS EXCLUSIVE MODE")
        engine = world.engine
        with engine.serving(10) as lease, WakeupListener(engine.database) as listener:
            intake = SourceIngester(
                DaemonContext(engine, lease, listener, lambda _: None, ScheduleState()), 1
            )
            for _ in range(2):
                intake.take(engine.catalog.state(), thorough=True)
                intake._stalled_until = math.inf
                assert world.sources["a"].status is Status.SUSPENDED
            intake.take(engine.catalog.state(), thorough=True)
            assert world.sources["a"].status is Status.SUSPENDED
            match mended:
                case "script":
                    world.run(world.project.cdc_sql())
                case "right":
                    world.run("GRANT SELECT ON a TO least")
                case "lock":
                    holder.rollback()
            intake.take(engine.catalog.state(), thorough=True)
            intake.close()
    finally:
        holder.close()
    assert world.sources["a"].status is Status.ACTIVE


def test_a_reader_of_a_lost_column_stays_stopped_whatever_else_stops_its_source(
    world: World,
) -> None:
    captured(world)
    world.run("ALTER TABLE a DROP y")
    world.take()
    world.run(world.project.cdc_sql())
    world.cut(retry=["a"])
    assert statuses(world) == [Status.ACTIVE, Status.SUSPENDED, Status.ACTIVE]
    world.run("REVOKE SELECT ON a FROM least", "TRUNCATE a")
    world.take()
    world.run("GRANT SELECT ON a TO least")
    world.cut(retry=["a"])
    assert statuses(world) == [Status.ACTIVE, Status.SUSPENDED, Status.ACTIVE]
    assert "a column of public.a" in (tables(world)["reads_y"].reason or "")


def test_a_reader_awaits_its_rebuild_whatever_else_stops_its_source(world: World) -> None:
    captured(world)
    world.run("ALTER TABLE a ALTER x TYPE bigint")
    world.take()
    world.run(world.project.cdc_sql())
    world.cut(retry=["a"])
    assert tables(world)["reads_x"].awaits_rebuild
    world.run("REVOKE SELECT ON a FROM least", "TRUNCATE a")
    world.take()
    reader = tables(world)["reads_x"]
    assert "may not read public.a" in (reader.reason or "")
    assert reader not in world.engine.catalog.state().to_be_rebuilt, "it could not read its source"
    world.run("GRANT SELECT ON a TO least")
    world.cut(retry=["a"])
    assert statuses(world) == [Status.SUSPENDED, Status.ACTIVE, Status.ACTIVE]
    assert world.engine.catalog.state().to_be_rebuilt == (tables(world)["reads_x"],)
