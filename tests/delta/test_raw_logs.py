"""Logs full of rows that came and went: no query may see them, and none may divide by their zeros.

Every table's log holds rows added and removed again, with values that no row has had (zeros among
them); a stage's log holds all of its own past.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from headrace.delta import differentiate
from headrace.functions.function import EvaluationError
from headrace.plan.evaluate import Bag, net
from headrace.plan.stages import cut_stages
from headrace.query import bind
from tests.delta import raw_logs
from tests.delta.raw_logs import total
from tests.delta.raw_queries import ADDING, CHOOSING, DIVIDING
from tests.delta.raw_refresh import TABLES, Raw, RawLog, Schema, gone_row, next_world, row
from tests.delta.stage_logs import shown
from tests.delta.worlds import World

STEPS = 4
HISTORIES = 8


def check(query: str, seed: int) -> None:
    """A history of the tables, refreshed step by step; every other one without sums of states."""
    random = Random(seed)
    bound = bind(query, Schema())
    stages = cut_stages(bound.plan, "x")
    if seed % 2:
        stages = tuple(replace(stage, additive=False) for stage in stages)
    gone = {table: [gone_row(random) for _ in range(4)] for table in TABLES}
    at: dict[str, Bag] = {table: Counter(row(random) for _ in range(2)) for table in TABLES}
    world, _ = next_world(random, at, bound.written)
    logs: dict[str, RawLog] = {}
    Raw(World(world.after, world.after), gone, logs).filled(stages)
    for _ in range(STEPS):
        world, expected = next_world(random, world.after, bound.written)
        Raw(world, gone, logs).refreshed(stages)
        assert shown(stages[-1], total(logs["x"].whole)) == expected
    fresh = Raw(World(world.after, world.after), gone, {})
    fresh.filled(stages)
    for name, log in logs.items():
        assert net(total(log.whole)) == net(total(fresh.logs[name].whole)), "the state is the same"


def check_histories(query: str) -> None:
    for seed in range(HISTORIES):
        check(query, seed)


@pytest.mark.parametrize("query", DIVIDING + CHOOSING + ADDING)
def test_rows_that_came_and_went_are_not_seen(query: str) -> None:
    check_histories(query)


@pytest.mark.parametrize("query", DIVIDING)
def test_without_the_guard_they_are_divided_by(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differentiate, "guard_errors", lambda plan: plan)
    with pytest.raises((EvaluationError, AssertionError)):
        check_histories(query)


@pytest.mark.parametrize("query", CHOOSING)
def test_without_netting_they_are_chosen(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_logs, "netted", list)
    with pytest.raises(AssertionError):
        check_histories(query)
