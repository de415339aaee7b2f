"""Windows and tops: the change of a stage against its definition, on random bags."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.scalar import Column, Value
from headrace.delta.differentiate import stage_change
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import (
    WHOLE,
    Aggregate,
    Operator,
    Restrict,
    Scan,
    SortKey,
    Top,
    Window,
    WindowCall,
)
from headrace.plan.passes import improve
from headrace.plan.stages import cut_stages
from headrace.types import BIGINT, INTEGER
from tests.delta.partition_plans import plans
from tests.delta.stage_logs import check, check_steps, filled, reader, refreshed
from tests.delta.worlds import World, worlds
from tests.forms import examples


@settings(max_examples=examples(400), deadline=None)
@given(plans(), worlds())
def test_a_change_is_the_difference_of_states(plan: Operator, world: World) -> None:
    check(plan, world)


@settings(max_examples=examples(200), deadline=None)
@given(plans(), worlds())
def test_the_passes_keep_the_rows(plan: Operator, world: World) -> None:
    read = reader(World(world.after, world.after), {})
    better = improve(plan)
    assert better.columns == plan.columns
    assert net(evaluate(better, read)) == net(evaluate(plan, read))


@settings(max_examples=examples(100), deadline=None)
@given(plans(), st.lists(worlds(), min_size=2, max_size=4))
def test_small_steps_are_one_big_step(plan: Operator, steps: list[World]) -> None:
    check_steps(plan, steps)


K, X = Column("k", INTEGER), Column("x", INTEGER)
ROWS = Scan("a", (("c1", K), ("c2", X)))
NUMBER = WindowCall(Column("n", BIGINT), "row_number", order=(SortKey(X),))


def world(before: list[tuple[Value, Value]], after: list[tuple[Value, Value]]) -> World:
    nothing: Bag = Counter()
    return World(
        {"a": Counter(before), "b": nothing, "c": nothing},
        {"a": Counter(after), "b": nothing, "c": nothing},
    )


def changed(plan: Operator, at: World) -> Bag:
    """What one refresh appends to the log of a plan of one stage."""
    check(plan, at)
    stages = cut_stages(plan, "x")
    logs, _ = refreshed(stages, at, filled(stages, World(at.before, at.before)))
    return logs["x"].added


def test_an_update_of_the_partition_key_touches_two_partitions() -> None:
    at = world([(1, 1), (1, 2), (2, 5), (3, 9)], [(1, 1), (2, 2), (2, 5), (3, 9)])
    added = changed(Window(ROWS, (K,), (NUMBER,)), at)
    # The stored rows begin with the partition's key; what did not change is not written again.
    assert added == {(1, 1, 2, 2): -1, (2, 2, 2, 1): 1, (2, 2, 5, 1): -1, (2, 2, 5, 2): 1}


def test_only_touched_partitions_are_read() -> None:
    (stage,) = cut_stages(Window(ROWS, (K,), (NUMBER,)), "x")
    plan = stage_change(stage, frozenset({"a"}))

    def restricted(node: Operator) -> int:
        return isinstance(node, Restrict) + sum(restricted(child) for child in node.children)

    assert restricted(plan) == 2, "the rows below, and what is stored"
    (stage,) = cut_stages(Window(ROWS, (), (NUMBER,)), "x")
    assert restricted(stage_change(stage, frozenset({"a"}))) == 0


FIRST = Top(ROWS, (), (SortKey(X),), (SortKey(K),), 2)


@pytest.mark.parametrize(
    ("top", "before", "after", "added", "stale"),
    [
        (FIRST, [(1, 1), (1, 2), (1, 3)], [(1, 1), (1, 2), (1, 3), (1, 4)], {}, 0),
        (FIRST, [(1, 1), (1, 2), (1, 3)], [(1, 1), (1, 2)], {}, 0),
        (FIRST, [(1, 1)], [(1, 1), (1, 4)], {(1, 4): 1}, 0),
        (FIRST, [(1, 1), (1, 3)], [(1, 1), (1, 2), (1, 3)], {(1, 3): -1, (1, 2): 1}, 0),
        (FIRST, [(1, 1), (1, 2), (1, 3)], [(1, 2), (1, 3)], {(1, 1): -1, (1, 3): 1}, 1),
        (FIRST, [(1, 1), (1, 2), (1, 3)], [(1, 0), (1, 2), (1, 3)], {(1, 1): -1, (1, 0): 1}, 0),
        (FIRST, [(1, 1), (1, 2), (1, 2), (1, 2)], [(1, 1), (1, 2)], {}, 1),
        (
            replace(FIRST, with_ties=True),
            [(1, 1), (1, 2), (1, 3)],
            [(1, 1), (1, 2), (2, 2), (1, 3)],
            {(2, 2): 1},
            0,
        ),
        (
            replace(FIRST, with_ties=True),
            [(1, 1), (1, 2), (2, 2), (1, 3)],
            [(1, 1), (2, 2), (1, 3)],
            {(1, 2): -1},
            0,
        ),
        (
            replace(FIRST, limit=1, offset=1),
            [(1, 1), (1, 1), (1, 2)],
            [(1, 1), (1, 2)],
            {(1, 1): -1, (1, 2): 1},
            0,
        ),
        (
            Top(ROWS, (K,), (SortKey(X, descending=True, nulls_first=True),), (), 1),
            [(1, 1), (None, 2)],
            [(1, 1), (1, None), (None, 2)],
            {(1, 1): -1, (1, None): 1},
            0,
        ),
    ],
    ids=[
        "a row behind comes",
        "a row behind goes",
        "fewer than asked for",
        "a row inside comes",
        "a row inside goes",
        "one goes, one comes",
        "copies of the last go",
        "a tie comes",
        "a tie goes",
        "with an offset",
        "by key",
    ],
)
def test_top(
    top: Top,
    before: list[tuple[Value, Value]],
    after: list[tuple[Value, Value]],
    added: dict[tuple[Value, ...], int],
    stale: int,
) -> None:
    at = world(before, after)
    assert check(top, at) == stale
    stored = changed(top, at)
    # The visible columns come last.
    assert {row[-2:]: weight for row, weight in stored.items()} == added


def test_a_window_over_groups() -> None:
    total = Aggregate(ROWS, (K,), ())
    plan = Window(total, (), (WindowCall(Column("n", INTEGER), "sum", (K,), frame=WHOLE),))
    assert [stage.relation for stage in cut_stages(plan, "x")] == ["xh1", "x"]
    check(plan, world([(1, 1), (2, 1)], [(1, 1), (1, 2)]))
