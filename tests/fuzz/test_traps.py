"""How other systems went wrong, each as a view and the changes that showed it.

Every scenario starts with the same three tables, and is compared with PostgreSQL at first and after
every batch, step by step and in one big step. No scenario leaves the path of changes: the plan's
stages take in nothing but the difference. tests/README.md says which trap each one stands for.
"""

from __future__ import annotations

import pytest

from fuzz.example import Example
from fuzz.plan_way import PlanWay
from fuzz.ways import run_example
from fuzz.write import Written
from tests.fuzz.scenarios import SCENARIOS, SETUP

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("name", SCENARIOS)
def test_step_by_step(plans: PlanWay, name: str) -> None:
    query, batches = SCENARIOS[name]
    run_example(plans, Example(SETUP, (), query, batches))


@pytest.mark.parametrize("name", SCENARIOS)
def test_in_one_big_step(plans: PlanWay, name: str) -> None:
    query, batches = SCENARIOS[name]
    at_once = tuple(statement for batch in batches for statement in batch)
    run_example(plans, Example(SETUP, (), query, (at_once,)))


@pytest.mark.parametrize(
    "name", [name for name, (query, _) in SCENARIOS.items() if "RECURS" in query]
)
def test_recursions_follow_changes(plans: PlanWay, name: str) -> None:
    """By rounds over what changed: none of them is recomputed."""
    plans.start(SETUP)
    (view,) = plans.create("x", Written((), SCENARIOS[name][0]))
    loops = [stage for stage in view.maintained.stages if stage.variable is not None]
    assert len(loops) == 1
    assert all(stage.obstacle is None for stage in view.maintained.stages)


LISTS_SETUP = (
    "CREATE TABLE t (id int, c char(4), s text, vc varchar(5), ts timestamp, d date, b bigint,"
    " f float8, g real, n numeric(30,20))",
    "INSERT INTO t VALUES (1, 'ab', 'zz', 'ab ', '2024-01-01', '2024-05-05', 9007199254740992, 1,"
    " 0.5, 1.00000000000000000001), (2, 'cd', 'cd ', 'cd ', '2024-01-01 12:00', '2024-01-01', 5,"
    " 5, 5, 5), (3, 'x', 'ab', 'ab', '2024-01-01', '2024-01-01', 16777217, 9007199254740992,"
    " 16777216, 3), (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "CREATE TABLE u (id int, b bigint)",
    "INSERT INTO u VALUES (1, 9007199254740992), (2, 9007199254740993), (3, 5), (4, NULL)",
)


@pytest.mark.parametrize(
    "test",
    [
        "c = ANY (ARRAY['ab ', s])",
        "c <> ALL (ARRAY['ab ', s])",
        "c = ANY (ARRAY['ab ', vc])",
        "s = ANY (ARRAY['ab ', c])",
        "ts = ANY (ARRAY['2024-01-01', d])",
        "d = ANY (ARRAY['2024-01-01 12:00', ts])",
        "b = ANY (ARRAY[9007199254740993, f])",
        "b <> ALL (ARRAY[9007199254740993, f, NULL])",
        "b = ANY (ARRAY[9007199254740993, 0.5::float8])",
        "n = ANY (ARRAY[1, f])",
        "n = ANY (ARRAY[1, b])",
        "n = ANY (ARRAY[0.5, 5::real])",
        "g = ANY (ARRAY[16777217, 1])",
        "g = ANY (ARRAY[16777217, b])",
        "g = ANY (ARRAY[0.5, g])",
        "'5' = ANY (ARRAY[b, f])",
        "EXISTS (SELECT FROM u WHERE u.b IN (9007199254740993, t.f))",
        "(SELECT count(*) FROM u WHERE u.b NOT IN (9007199254740993, 0, t.f)) > 2",
        "(SELECT count(*) FROM u WHERE u.b IN (t.b, t.n, 3)) > 0",
    ],
)
def test_lists_with_columns_have_one_type(plans: PlanWay, test: str) -> None:
    """An array by its items alone; an IN list by what reads no column of the same query."""
    query = f"SELECT id, {test} AS x FROM t"
    changes = ("UPDATE t SET b = b + 1", "DELETE FROM u WHERE id = 2")
    run_example(plans, Example(LISTS_SETUP, (), query, (changes,)))
