"""Every delta rule against its definition, query(after) − query(before), on random bags."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.scalar import Column, Literal, Value
from headrace.functions import call
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Join,
    Operator,
    Scan,
)
from headrace.plan.passes import improve, push_filters
from headrace.plan.stages import cut_stages
from headrace.types import DOUBLE, INTEGER
from tests.delta.random_plans import plans
from tests.delta.stage_logs import check, check_steps, reader
from tests.delta.worlds import World, worlds
from tests.forms import examples


@settings(max_examples=examples(500), deadline=None)
@given(plans(), worlds())
def test_a_stage_s_change_is_the_difference_of_its_states(plan: Operator, world: World) -> None:
    check(plan, world)


@settings(max_examples=examples(150), deadline=None)
@given(plans(), worlds())
def test_recomputing_touched_groups_gives_the_same(plan: Operator, world: World) -> None:
    check(plan, world, additive=False)


@settings(max_examples=examples(100), deadline=None)
@given(plans(), st.lists(worlds(), min_size=2, max_size=4))
def test_small_steps_are_one_big_step(plan: Operator, steps: list[World]) -> None:
    check_steps(plan, steps)


@settings(max_examples=examples(200), deadline=None)
@given(plans(), worlds())
def test_the_passes_keep_the_rows(plan: Operator, world: World) -> None:
    read = reader(World(world.after, world.after), {})
    better = improve(plan)
    assert better.columns == plan.columns
    assert net(evaluate(better, read)) == net(evaluate(plan, read))
    check(better, world)


K, X = Column("k", INTEGER), Column("x", INTEGER)
ROWS = Scan("a", (("c1", K), ("c2", X)))
BESTS = (
    AggregateCall(Column("least", INTEGER), "min", X),
    AggregateCall(Column("greatest", INTEGER), "max", X),
)


@pytest.mark.parametrize(
    ("before", "after", "stale"),
    [
        ([(1, 3), (1, 5)], [(1, 3), (1, 5), (1, 7), (2, 1)], 0),
        ([(1, 3), (1, 4), (1, 5)], [(1, 3), (1, 5)], 0),
        ([(1, 3), (1, 5)], [(1, 5)], 1),
        ([(1, 3), (1, 5), (2, 3), (2, 5)], [(1, 5), (2, 5)], 2),
        ([(1, 3), (1, 5)], [(1, 2), (1, 5)], 0),
        ([(1, 3), (1, 5)], [(1, 4), (1, 5)], 1),
        ([(1, 3), (1, 3), (1, 5)], [(1, 3), (1, 5)], 1),
        ([(1, 3), (1, 5)], [], 0),
        ([(1, 3), (1, None)], [(1, None)], 0),
        ([(1, None)], [(1, 3), (1, None)], 0),
        ([(1, 3), (None, 4)], [(None, 4), (None, 9)], 0),
        ([(1, 3), (1, 5)], [(2, 3), (1, 5)], 1),
    ],
    ids=[
        "inserts",
        "a value between them goes",
        "the least goes",
        "in two groups",
        "a better one comes",
        "a worse one comes",
        "one of two equal ones goes",
        "the whole group goes",
        "only NULL is left",
        "the first value comes",
        "a NULL key",
        "a row changes its group",
    ],
)
@pytest.mark.parametrize("keys", [(K,), ()], ids=["grouped", "global"])
def test_extrema(
    keys: tuple[Column, ...],
    before: list[tuple[Value, Value]],
    after: list[tuple[Value, Value]],
    stale: int,
) -> None:
    nothing: Bag = Counter()
    world = World(
        {"a": Counter(before), "b": nothing, "c": nothing},
        {"a": Counter(after), "b": nothing, "c": nothing},
    )
    found = check(Aggregate(ROWS, keys, BESTS), world)
    assert found == stale if keys else found <= 1


def test_float_sums_are_not_added_up() -> None:
    x = Column("x", DOUBLE)
    scan = Scan("a", (("c1", x),))
    plan = Aggregate(scan, (), (AggregateCall(Column("s", DOUBLE), "sum", x),))
    (stage,) = cut_stages(plan, "x")
    assert not stage.additive


def test_a_condition_that_can_raise_sees_no_pair_that_never_was() -> None:
    """The old left row is gone when the new right row comes: together they would divide by zero."""
    a, b, key_a, key_b = (Column(name, INTEGER) for name in ("a", "b", "ka", "kb"))
    left = Scan("a", (("c1", key_a), ("c2", a)))
    right = Scan("b", (("c1", key_b), ("c2", b)))
    ratio = call(">", call("/", a, b), Literal(0, INTEGER))
    plan = push_filters(Join(left, right, call("and", call("=", key_a, key_b), ratio)))
    world = World(
        before={"a": Counter({(1, 6): 1}), "b": Counter({(1, 3): 1}), "c": Counter()},
        after={"a": Counter({(2, 8): 1}), "b": Counter({(1, 0): 1, (2, 4): 1}), "c": Counter()},
    )
    check(plan, world)
