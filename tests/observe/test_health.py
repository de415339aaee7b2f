"""What is judged to be well, a warning or critical."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.catalog.records import Heartbeat, Lease
from headrace.lifecycle.planned_table import TableRequest
from headrace.observe import health
from headrace.observe.blockers import Blocker
from headrace.observe.capture_status import SourceCapture
from headrace.observe.cdc_status import SourceHealth
from headrace.observe.health import GIGABYTE, Check, Health
from headrace.observe.heartbeat import watched
from headrace.observe.table_status import TableStatus
from headrace.schedule.effective import effective_schedules
from headrace.schedule.schedule import Calculated, parse_schedule
from tests.cli.examples import table
from tests.e2e.live_project import project, sql
from tests.lifecycle.made import put_tables

__all__ = ["project", "sql"]

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def lag(found: Sequence[TableStatus], sources: Sequence[SourceHealth] = ()) -> Check:
    """What is judged of tables that no other table reads."""
    parsed = {one.name: parse_schedule(one.schedule, "UTC") for one in found}
    named = [replace(one, relation=one.name) for one in found]
    return health.lag(named, effective_schedules(parsed, {}), NOW, sources)


def test_a_daemon_is_needed_for_schedules() -> None:
    serving = Lease(3, "box:1", 1, NOW, serves=True)
    scheduled = [table(schedule="30s"), table()]
    assert health.daemon(serving, scheduled).level == "fine"
    assert health.daemon(None, [table()]).level == "fine"
    missing = health.daemon(None, scheduled)
    assert (missing.level, missing.detail) == (
        "critical",
        "none runs, and 1 tables have a schedule",
    )


@pytest.mark.parametrize(
    ("age", "in_round", "busy", "level"),
    [
        (5, 0, None, "fine"),
        (59, 59, None, "fine"),
        (61, 0, None, "critical"),
        (61, 0, "refreshing", "critical"),
        (5, 61, None, "critical"),
        (5, 7200, "refreshing", "fine"),
        (5, 7200, "taking in changes", "fine"),
    ],
)
def test_a_daemon_that_hangs_is_critical(
    age: int, in_round: int, busy: str | None, level: str
) -> None:
    serving = Lease(3, "box:1", 17, NOW, serves=True)
    heartbeat = Heartbeat(timedelta(seconds=age), timedelta(seconds=in_round), busy)
    check = health.daemon(serving, [], heartbeat)
    assert check.level == level
    if level == "critical":
        assert "0:01:01" in check.detail
        assert "end process 17" in check.detail
    else:
        assert (f"has been {busy} for 2:00:00" in check.detail) == (busy is not None)
    assert health.daemon(None, [], heartbeat).level == "fine", "it is gone"


@pytest.mark.parametrize("looks", [1, 5])
def test_a_machine_that_was_paused_is_given_time_to_go_on(looks: int) -> None:
    old, new = (Heartbeat(timedelta(seconds=age), timedelta(0)) for age in (9000, 1))
    beats = iter([*[old] * looks, new])
    assert watched(lambda: next(beats), lambda _: None) == new
    assert watched(lambda: old, lambda _: None) == old


def test_tables_the_worst_first() -> None:
    found = [
        table("a", failures=2),
        table("b", blocked_by=Blocker("c", "lost")),
        table("c", status="SUSPENDED", reason="lost"),
        *(table(f"d{n}", failures=1) for n in range(3)),
        table("fine"),
    ]
    assert health.tables(found) == Check(
        "tables",
        "critical",
        "c is SUSPENDED: lost; a failed 2 times in a row; b waits for c; and 3 more",
    )
    assert health.tables([table()]).level == "fine"


@pytest.mark.parametrize(
    ("schedule", "own", "level"),
    [
        ("10m", timedelta(minutes=19), "fine"),
        ("10m", timedelta(minutes=21), "warning"),
        ("1s", timedelta(seconds=50), "fine"),
        ("1s", timedelta(seconds=62), "warning"),
        ("0 * * * *", timedelta(minutes=59), "fine"),
        ("0 * * * *", timedelta(minutes=150), "warning"),
        ("1s", timedelta(0), "fine"),
        ("1s", None, "warning"),
        (None, None, "fine"),
        ("calculated", None, "fine"),
        (None, timedelta(days=9), "fine"),
        ("calculated", timedelta(days=9), "fine"),
    ],
)
def test_late_is_more_than_a_turn_too_late(
    schedule: str | None, own: timedelta | None, level: str
) -> None:
    assert lag([table(schedule=schedule, lag_own=own)]).level == level


@pytest.mark.parametrize(
    ("tier", "own", "level"),
    [
        ("warm", timedelta(minutes=39), "fine"),
        ("warm", timedelta(minutes=41), "warning"),
        ("cold", timedelta(days=9), "fine"),
        ("frozen", timedelta(days=9), "fine"),
    ],
)
def test_a_tier_promises_less(tier: str, own: timedelta, level: str) -> None:
    found = table(schedule="10m", lag_own=own, tier="auto", tier_in_force=tier)
    assert lag([found]).level == level


@pytest.mark.parametrize(
    ("readers", "own", "level"),
    [
        (["1h", "10m"], timedelta(minutes=19), "fine"),
        (["1h", "10m"], timedelta(minutes=21), "warning"),
        (["1h", None], timedelta(minutes=21), "fine"),
        (["1h", "0 0 1 1 *"], timedelta(minutes=121), "warning"),
        ([None], timedelta(days=9), "fine"),
        (["1h"], None, "warning"),
        ([None], None, "fine"),
    ],
)
def test_a_calculated_table_is_judged_by_those_that_read_it(
    readers: list[str | None], own: timedelta | None, level: str
) -> None:
    """The tightest of their schedules counts."""
    found = table(relation="below", schedule="calculated", lag_own=own)
    parsed = {f"r{n}": parse_schedule(text, "UTC") for n, text in enumerate(readers)}
    reads = {name: ["below"] for name in parsed}
    schedules = effective_schedules({**parsed, "below": Calculated()}, reads)
    assert health.lag([found], schedules, NOW).level == level
    frozen = replace(found, tier_in_force="frozen")
    assert health.lag([frozen], schedules, NOW).level == "fine"


@pytest.mark.postgres
def test_the_schedules_of_those_that_read_a_table_are_known(dsn: str, tmp_path: Path) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as application,
        headrace.connect(dsn=dsn, home=tmp_path) as project,
    ):
        application.execute("CREATE TABLE t (id int)")
        put_tables(project, TableRequest("below", "SELECT id FROM t", schedule="calculated"))
        put_tables(project, TableRequest("above", "SELECT id FROM below"))

        def lag_level() -> str:
            return next(one.level for one in project.health_check().checks if one.area == "lag")

        assert lag_level() == "fine"
        project.alter_stream_table("above", schedule="1h", tier="frozen")
        assert lag_level() == "warning", "below was never refreshed"


def test_a_lag_that_is_unknown_is_not_fine() -> None:
    known = {"schedule": "1h", "lag_own": timedelta(0)}
    silent, other = (
        SourceHealth(name, "crm", "TRIGGER", "auto", None, "ACTIVE", None, None, None, level, None)
        for name, level in (("crm.public.a", "critical"), ("crm.public.b", "fine"))
    )
    silent = replace(silent, answers=False)
    found = [
        table("new", schedule="1h", epoch=0),
        table("lost", schedule="1h"),
        table("above", **known, capture=(SourceCapture("crm.public.a", "TRIGGER"),)),
        table("beside", **known, capture=(SourceCapture("crm.public.b", "TRIGGER"),)),
        table("unwatched", schedule="1h", tier_in_force="frozen"),
    ]
    check = lag(found, [silent, other])
    assert (check.level, check.detail.split("; ")) == (
        "warning",
        [
            "the lag of new is unknown: it has never been refreshed",
            "the lag of lost is unknown: the log or the history of what it reads is not readable",
            "the lag of above is unknown: the database of crm.public.a does not answer",
        ],
    )


def test_a_table_that_is_known_to_be_late_is_late() -> None:
    """Also if its database does not answer: at least so much is known."""
    (source,) = [
        SourceHealth("a", "crm", "TRIGGER", "auto", None, "ACTIVE", *[None] * 3, "critical", "no")
    ]
    late = table(
        schedule="10m", lag_own=timedelta(hours=1), capture=(SourceCapture("a", "TRIGGER"),)
    )
    check = lag([late], [replace(source, answers=False)])
    assert check.detail == "public.totals has lacked changes for 1:00:00"


def test_a_table_that_waits_for_its_first_refresh_is_no_fault() -> None:
    found = health.tables([table(), table(status="INITIALIZING", reason="new", epoch=0)])
    assert (found.level, found.detail) == ("fine", "2 stream tables, 1 of them not filled yet")


@pytest.mark.parametrize(
    ("free", "total", "level"),
    [
        (4 * GIGABYTE, 100 * GIGABYTE, "warning"),
        (GIGABYTE // 2, 100 * GIGABYTE, "critical"),
        (6 * GIGABYTE, 1000 * GIGABYTE, "fine"),
        (GIGABYTE, 4 * GIGABYTE, "fine"),
        (0, GIGABYTE, "critical"),
    ],
)
def test_little_room_on_a_small_disk_is_not_little(free: int, total: int, level: str) -> None:
    assert health.disk(free, total).level == level


def test_the_whole_is_as_bad_as_the_worst() -> None:
    fine, roles = Check("a", "fine", ""), health.roles(["postgres"])
    assert Health((fine,)).level == "fine"
    assert Health((fine, roles, fine)).level == roles.level == "warning"


@pytest.mark.e2e
def test_a_project(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    def levels() -> dict[str, str]:
        return {one.area: one.level for one in project.health_check().checks}

    sql.execute("CREATE TABLE t (id int); INSERT INTO t VALUES (1)")
    project.create_stream_table("v", "SELECT id FROM t")
    first = levels()
    assert (first["daemon"], first["tables"], first["capture"]) == ("fine", "fine", "fine")
    project.alter_stream_table("v", schedule="1h")
    project.suspend("v")
    second = levels()
    assert (second["daemon"], second["tables"]) == ("critical", "critical")
