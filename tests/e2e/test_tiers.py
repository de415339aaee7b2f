"""Warm and cold tables under a daemon, at the intervals of their schedules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise

import psycopg
import pytest

import headrace
from headrace.schedule.state import ScheduleState
from tests.daemon.running import Running
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

QUERY = "SELECT k, count(*) AS n FROM t GROUP BY k"
PERIOD = timedelta(seconds=1)


@pytest.fixture
def other(project: headrace.Headrace, dsn: str) -> Iterator[headrace.Headrace]:
    with headrace.connect(dsn=dsn, home=project.home) as opened:
        yield opened


def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[datetime, frozenset[str]]]:
    """When the daemon begins with which tables, or passes over them."""
    found: list[tuple[datetime, frozenset[str]]] = []
    attempted = ScheduleState.attempted

    def note(self: ScheduleState, relations: Iterable[str], at: datetime) -> None:
        found.append((at, frozenset(relations)))
        attempted(self, relations, at)

    monkeypatch.setattr(ScheduleState, "attempted", note)
    return found


def test_warm_and_cold_beside_hot(
    project: headrace.Headrace,
    other: headrace.Headrace,
    sql: psycopg.Connection,
    dsn: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sql.execute("CREATE TABLE t (k int)")
    tiers = ("hot", "warm", "cold")
    project.create_stream_tables(
        {tier: {"query": QUERY, "schedule": "1s", "tier": tier} for tier in tiers}
    )
    written = [0]

    def write() -> bool:
        """Have something to refresh all the time; whether the hot table was refreshed often."""
        written[0] += 1
        sql.execute("INSERT INTO t VALUES (%s)", (written[0] % 5,))
        return len(other.history("hot")) >= 6

    attempts = watched(monkeypatch)
    with Running(project) as running:
        running.until(write)
        names = {one.name: one.relation for one in project._engine.catalog.state().stream_tables}
        for tier, least in (("hot", PERIOD), ("warm", 2 * PERIOD)):
            moments = [at for at, relations in attempts if names[tier] in relations]
            assert all(later - at >= least for at, later in pairwise(moments))
        assert len(other.history("warm")) > 1, "it is refreshed"
        assert len(other.history("cold")) == 1, "nobody has read it since it was created"
        with psycopg.connect(dsn) as reader:
            assert reader.execute("SELECT count(*) FROM cold").fetchone() == (0,)
        running.until(lambda: len(other.history("cold")) == 2)
        hot = len(other.history("hot"))
        running.until(lambda: not write() or len(other.history("hot")) >= hot + 3)
        assert len(other.history("cold")) == 2, "one read, one refresh"
    for tier in tiers:
        project.refresh(tier)
        assert_served(project, sql, tier)
