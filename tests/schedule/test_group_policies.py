"""When the groups of a project are due, from what its users said: the policies of a daemon."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.graph import groups
from headrace.lifecycle.planned_table import TableRequest
from headrace.schedule.due import due
from headrace.schedule.state import ScheduleState, agenda
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

# A nested diamond: the inner one meets in d, the outer one in f.
QUERIES = {
    "b": "SELECT k, sum(v) AS v FROM source GROUP BY k",
    "c": "SELECT k, count(*) AS n FROM source GROUP BY k",
    "d": "SELECT b.k, v, n FROM b JOIN c ON b.k = c.k",
    "e": "SELECT k, max(v) AS v FROM source GROUP BY k",
    "f": "SELECT d.k, d.v, e.v AS most FROM d JOIN e ON d.k = e.k",
    "g": "SELECT k FROM other",
}
SCHEDULES = {"b": "1m", "c": "10m", "d": "5m", "e": "1h", "f": "20m", "g": "1m"}
ALL, SOME = ["bcdef", "g"], ["b", "g"]
START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    """Its Spark never starts."""
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        headrace.connect(dsn=dsn, home=tmp_path) as opened,
    ):
        sql.execute("CREATE TABLE source (k int, v int); CREATE TABLE other (k int)")
        put_tables(
            opened,
            *(
                TableRequest.of(name, query, {"schedule": SCHEDULES[name]})
                for name, query in QUERIES.items()
            ),
        )
        yield opened


def due_after(project: headrace.Headrace, minutes: int) -> list[str]:
    """What a daemon would refresh together so long after it refreshed everything."""
    state = project._engine.catalog.state()
    settings = project._engine.settings(state)
    names = {table.relation: table.name for table in state.stream_tables}
    found = groups({table.relation: table.inputs for table in state.stream_tables})
    memory = ScheduleState(last=dict.fromkeys(names, START))
    planned = agenda(state, settings, found, memory, frozenset())
    now = due(START + timedelta(minutes=minutes), planned, timedelta(seconds=5))
    return sorted("".join(sorted(names[one] for one in each.relations)) for each in now)


def test_by_default_a_group_is_due_with_its_first_member(project: headrace.Headrace) -> None:
    assert due_after(project, 0) == []
    assert due_after(project, 1) == ALL


@pytest.mark.parametrize("slow", ["d", "f"])
def test_a_convergence_that_is_slowest_waits_for_all(project: headrace.Headrace, slow: str) -> None:
    """Of nested diamonds the strictest wins, whichever says it."""
    project.alter_stream_table(slow, diamond_schedule_policy="slowest")
    other = "f" if slow == "d" else "d"
    project.alter_stream_table(other, diamond_schedule_policy="fastest")
    for minutes in (1, 20, 59):
        assert due_after(project, minutes) == ["g"]
    assert due_after(project, 60) == ALL


def test_tables_override_the_setting_of_the_project(project: headrace.Headrace) -> None:
    project.set("diamond_schedule_policy", "slowest")
    assert due_after(project, 59) == ["g"]
    for name in ("d", "f"):
        project.alter_stream_table(name, diamond_schedule_policy="fastest")
    assert due_after(project, 1) == ALL
    project.alter_stream_table("f", diamond_schedule_policy=None)
    assert due_after(project, 59) == ["g"]
    assert due_after(project, 60) == ALL


def test_intermediates_have_no_say(project: headrace.Headrace) -> None:
    project.alter_stream_table("b", diamond_schedule_policy="slowest")
    assert due_after(project, 1) == ALL


@pytest.mark.parametrize("policy", ["fastest", "slowest"])
def test_without_consistency_nobody_asks_for_the_policy(
    project: headrace.Headrace, policy: str
) -> None:
    project.set("diamond_schedule_policy", policy)
    project.alter_stream_table("c", diamond_consistency="none")
    assert due_after(project, 1) == SOME
    assert due_after(project, 20) == ["b", "c", "d", "f", "g"]
    assert due_after(project, 60) == ["b", "c", "d", "e", "f", "g"]


def test_a_calculated_member_follows_its_readers(project: headrace.Headrace) -> None:
    project.alter_stream_table("b", schedule="calculated")
    assert due_after(project, 1) == ["g"]
    assert due_after(project, 5) == ALL
    for name in ("c", "d", "e", "f"):
        project.alter_stream_table(name, schedule=None)
    assert due_after(project, 10_000) == ["g"], "all of the group are manual now"
