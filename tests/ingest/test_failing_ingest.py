"""A daemon that cannot take in the changes of a database says so, wherever a status is shown.

A source that holds a value which cannot be stored is copied soon after rows of it were changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import psycopg
import pytest

from headrace.catalog import State
from headrace.catalog.records import Status
from headrace.daemon import ingester as intake_module
from headrace.daemon.context import DaemonContext
from headrace.daemon.ingester import SourceIngester
from headrace.daemon.wakeup import WakeupListener
from headrace.errors import Transient
from headrace.lifecycle.planned_table import TableRequest
from headrace.schedule.state import ScheduleState
from tests.alerts import heard_so_far, listen
from tests.ingest.world import TRIGGER, World
from tests.lifecycle.made import put_tables

pytestmark = [pytest.mark.postgres, pytest.mark.parametrize("mode", [TRIGGER])]
WHY = "a Spark job failed: no space"


@pytest.fixture
def intake(world: World) -> Iterator[SourceIngester]:
    """The intake of a daemon over one stream table and another one that reads it."""
    world.run("CREATE TABLE a (id int PRIMARY KEY, n numeric)")
    put_tables(world.project, TableRequest("one", "SELECT id, n FROM a"))
    put_tables(world.project, TableRequest("two", "SELECT id FROM one"))
    world.cut()
    engine = world.engine
    with engine.serving(10) as lease, WakeupListener(engine.database) as listener:
        made = SourceIngester(
            DaemonContext(engine, lease, listener, lambda _: None, ScheduleState()), 1
        )
        yield made
        made.close()


def take(intake: SourceIngester, world: World) -> State:
    intake._not_before = 0.0
    intake.take(world.engine.catalog.state(), thorough=True)
    return world.engine.catalog.state()


def reasons(world: World) -> list[str | None]:
    with psycopg.connect(world.dsn) as connection:
        rows = connection.execute("SELECT reason FROM headrace.status ORDER BY name").fetchall()
    return [reason for (reason,) in rows]


def test_a_status_says_that_nothing_is_taken_in(
    world: World, intake: SourceIngester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> State:
        raise Transient("spark-failed", WHY)

    listen(world.application)
    with monkeypatch.context() as failing:
        failing.setattr(intake_module, "ingest_database", fail)
        first = take(intake, world).database(1)
        assert first.failing_since is not None
        assert first.failure == WHY
        assert take(intake, world).database(1) == first, "since the first failure"
    (raised,) = heard_so_far(world.application)
    assert (raised["about"], raised["name"], raised["code"]) == (
        "database",
        "home",
        "ingest-failing",
    )
    assert raised["level"] == "critical" and WHY not in str(raised)
    for table in world.project.status():
        assert str(table.blocked_by) == f"database home ({WHY})"
    assert reasons(world) == [f"waits for database home: {WHY}"] * 2
    (database,) = world.project.databases()
    assert (database.failing_since, database.failure) == (first.failing_since, WHY)
    (source,) = world.project.check_cdc_health()
    assert source.level == "critical"
    assert WHY in (source.alert or "")

    assert take(intake, world).database(1).failing_since is None
    (cleared,) = heard_so_far(world.application)
    assert (cleared["code"], cleared["level"]) == ("ingest-failing", "fine")
    assert [table.blocked_by for table in world.project.status()] == [None, None]
    assert reasons(world) == [None, None]


def test_a_cut_that_succeeds_ends_it(world: World, intake: SourceIngester) -> None:
    """Also one that somebody else takes, such as a refresh after the daemon ended."""
    intake._record(WHY)
    world.run("INSERT INTO a VALUES (1)")
    world.take()
    assert world.engine.catalog.state().database(1).failing_since is None


def test_a_value_that_does_not_fit_is_mended(world: World, intake: SourceIngester) -> None:
    def is_suspended() -> bool:
        take(intake, world)
        return world.sources["a"].status is Status.SUSPENDED

    world.run("INSERT INTO a VALUES (1, 'NaN')")
    assert is_suspended()
    assert is_suspended(), "tried, with what is known of it now"
    intake._stalled_until = math.inf
    world.together("UPDATE a SET n = 2", "SELECT pg_stat_force_next_flush()")
    intake._rest_until = math.inf
    assert is_suspended(), "too soon after the last attempt"
    intake._rest_until = 0.0
    assert not is_suspended()
