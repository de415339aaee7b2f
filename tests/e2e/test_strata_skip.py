"""A daemon decides by strata: those into which no change comes are neither asked nor computed."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from headrace.daemon import loop as service
from headrace.observe.strata_status import StratumStatus
from tests.daemon.running import Running
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
CHAIN = {
    "totals": "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer",
    "best": "SELECT max(total) AS best FROM totals",
    "summary": "SELECT count(*) AS n, sum(best) AS best FROM best",
}


def lines(project: headrace.Headrace, name: str) -> int:
    """How many refreshes of a table the history has."""
    return len(project.history(name))


def test_strata_without_a_change_are_skipped_and_counted(
    project: headrace.Headrace, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "THOROUGH", 0.3)
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders VALUES (1, 1, 5), (2, 1, 5), (3, 2, 4)")
    project.create_stream_tables(
        {name: {"query": query, "schedule": "20ms"} for name, query in CHAIN.items()}
    )

    def strata() -> tuple[StratumStatus, ...]:
        found = project.stratum_status()
        assert [one.members for one in found] == [(f"public.{name}",) for name in CHAIN]
        return found

    assert {(one.refreshed, one.skipped, one.last_tick_at) for one in strata()} == {(0, 0, None)}
    with Running(project) as running:
        # The count of a group moves, its sum does not: what reads it sees no change.
        sql.execute("INSERT INTO orders VALUES (4, 1, 0)")
        running.until(lambda: strata()[0].refreshed == 1)
        assert [(one.refreshed, one.skipped) for one in strata()] == [(1, 0), (0, 1), (0, 1)]
        assert [one.skipped_last for one in strata()] == [False, True, True]
        assert [lines(project, name) for name in CHAIN] == [2, 1, 1]

        # A total that is not the best one goes up one stratum further.
        sql.execute("INSERT INTO orders VALUES (5, 2, 1)")
        running.until(lambda: strata()[1].refreshed == 1)
        assert [(one.refreshed, one.skipped) for one in strata()] == [(2, 0), (1, 1), (0, 2)]
        sql.execute("INSERT INTO orders VALUES (6, 2, 100)")
        running.until(lambda: strata()[2].refreshed == 1)
        assert [(one.refreshed, one.skipped) for one in strata()] == [(3, 0), (2, 1), (1, 2)]
        assert [lines(project, name) for name in CHAIN] == [4, 3, 2]

        # Without skipping, whatever reads something that was refreshed is looked at.
        project.set("enable_stratum_skip", False)
        sql.execute("INSERT INTO orders VALUES (7, 1, 0)")
        running.until(lambda: lines(project, "best") == 4)
        assert project.history("best")[0].rows_inserted == 0
    assert [one.skipped for one in strata()] == [0, 1, 2], "nothing was skipped since"
    for name in CHAIN:
        assert project.verify(name, source=True).equal
        assert_served(project, sql, name)
