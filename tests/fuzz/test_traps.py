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
