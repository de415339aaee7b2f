"""Recursive queries kept by the rules of their stages, against PostgreSQL after every change.

The queries and the tables are those of `tests.query.recursions`; changes are random, and small
enough for every query to end.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pytest

from fuzz.plan_way import PlannedView, PlanWay
from fuzz.ways import Failure
from headrace.plan.stages import Stage
from tests.query.recursions import QUERIES, load

pytestmark = pytest.mark.postgres
BATCHES = 15
# The tables that only lose rows: cycles in them would have no end.
NAMES = ("edges", "nodes", "parts", "blocked", "caps", "lists")


@pytest.fixture
def way(dsn: str) -> Iterator[PlanWay]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        load(connection)
        opened = PlanWay(connection)
        opened.names = NAMES
        opened.moved()
        yield opened


def change(random: Random, sql: psycopg.Connection[Any]) -> None:
    """Some statements; rows come between the nodes 1 to 6 alone, from which all walks are cut."""
    for _ in range(random.randint(2, 4)):
        a, b, c = (random.randint(1, 6) for _ in "abc")
        text = random.choice(
            (
                f"INSERT INTO edges VALUES ({a}, {b}, 0.25, 0.5)",
                f"INSERT INTO edges VALUES ({a}, NULL, 1, 1), ({b}, {c}, NULL, NULL)",
                f"DELETE FROM edges WHERE src = {a}",
                f"DELETE FROM edges WHERE dst = {a}",
                f"UPDATE edges SET dst = {b} WHERE src = {a} AND dst < 7",
                f"UPDATE nodes SET parent = {b} WHERE id = {a}",
                f"UPDATE nodes SET parent = NULL WHERE id = {a}",
                f"DELETE FROM nodes WHERE id = {a}",
                f"INSERT INTO nodes VALUES ({a}, {b}, 'again', 'x') ON CONFLICT DO NOTHING",
                f"DELETE FROM parts WHERE n = {a}",
                "INSERT INTO parts VALUES ('bike', 'spoke', 1), ('spoke', 'nut', 2)",
                f"INSERT INTO blocked VALUES ({a})",
                f"DELETE FROM blocked WHERE node = {a} OR node IS NULL",
                f"INSERT INTO caps VALUES ({a}, {b})",
                f"DELETE FROM caps WHERE k = {a}",
                f"DELETE FROM lists WHERE id = {a + 3}",
            )
        )
        sql.execute(text.encode())


def loops(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    return tuple(stage for stage in stages if stage.variable is not None)


def test_every_query_follows_changes(way: PlanWay) -> None:
    random = Random(6)
    views = [PlannedView(way, query) for query in QUERIES]
    moved = dict.fromkeys(QUERIES, 0)
    for _ in range(BATCHES):
        change(random, way.connection)
        way.moved()
        for view in views:
            try:
                moved[view.query] += view.refresh()
            except Failure as failure:
                pytest.fail(f"{view.query}\n{failure}")
    for view in views:
        view.verify()
    # Nearly all of them changed, most several times, and most are loops that followed the changes.
    assert sum(times == 0 for times in moved.values()) < len(QUERIES) / 10
    assert sum(times > 1 for times in moved.values()) > len(QUERIES) * 2 / 3
    assert sum(bool(loops(v.maintained.stages)) for v in views) > len(QUERIES) * 2 / 3
