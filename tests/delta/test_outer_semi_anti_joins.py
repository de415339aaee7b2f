"""Left, semi, anti and full joins, nested to any depth: their change and the passes over them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.scalar import Column, Literal
from headrace.delta.differentiate import relations_of
from headrace.functions import call
from headrace.plan.evaluate import evaluate, net
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    FullJoin,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Scan,
)
from headrace.plan.passes import improve
from headrace.plan.rename import numbered, renamed
from headrace.plan.stages import cut_stages
from headrace.types import BIGINT, INTEGER
from tests.delta.join_plans import matches, plans, small_worlds
from tests.delta.random_plans import Names
from tests.delta.stage_logs import check, reader
from tests.delta.worlds import World
from tests.forms import examples


@settings(max_examples=examples(600), deadline=None)
@given(plans(), small_worlds())
def test_the_change_is_the_difference_of_the_states(plan: Operator, world: World) -> None:
    check(plan, world)


@settings(max_examples=examples(300), deadline=None)
@given(plans(), small_worlds())
def test_the_passes_keep_the_rows(plan: Operator, world: World) -> None:
    better = improve(plan)
    assert better.columns == plan.columns
    read = reader(World(world.after, world.after), {})
    assert net(evaluate(better, read)) == net(evaluate(plan, read))
    check(better, world)


@st.composite
def twins(draw: st.DrawFn) -> Operator:
    """Groups that are read twice, under other names and with other columns each time."""
    names = Names()
    child = draw(matches(names, draw(st.integers(0, 2))))
    keys = draw(st.lists(st.sampled_from(child.columns), min_size=1, max_size=2, unique=True))
    counted = AggregateCall(names.column(BIGINT), "count", draw(st.sampled_from(child.columns)))
    groups: Operator = Aggregate(child, tuple(keys), (counted,))
    _, columns = numbered(groups)
    again = renamed(groups, {column: names.column(column.type) for column in columns})
    left, right = (
        Project(side, ((names.column(c.type), c),))
        for side, c in (
            (groups, draw(st.sampled_from(groups.columns))),
            (again, draw(st.sampled_from(again.columns))),
        )
    )
    on = call("=", left.columns[0], right.columns[0])
    return OuterSemiAntiJoin(left, right, "left", on)


@settings(max_examples=examples(100), deadline=None)
@given(twins(), small_worlds())
def test_groups_that_are_read_twice_are_kept_once(plan: Operator, world: World) -> None:
    better = improve(plan)
    assert len(relations_of(cut_stages(better, "x")[-1].region)) == 1
    check(plan, world)
    check(better, world)


L, X = Column("l", INTEGER), Column("x", INTEGER)
R, Y = Column("r", INTEGER), Column("y", INTEGER)
LEFT = Scan("a", (("c1", L), ("c2", X)))
RIGHT = Scan("b", (("c1", R), ("c2", Y)))
ON = call("=", L, R)
RATIO = call(">", call("/", X, Y), Literal(0, INTEGER))


@pytest.mark.parametrize("kind", ["left", "semi", "anti", "full"])
def test_a_match_that_can_raise_sees_no_pair_that_never_was(kind: str) -> None:
    """The old left row is gone when the new right row comes: together they would divide by zero."""
    on = call("and", ON, RATIO)
    plan: Operator = (
        FullJoin(LEFT, RIGHT, on) if kind == "full" else OuterSemiAntiJoin(LEFT, RIGHT, kind, on)  # type: ignore[arg-type]
    )
    world = World(
        before={"a": Counter({(1, 6): 1}), "b": Counter({(1, 3): 1}), "c": Counter()},
        after={"a": Counter({(2, 8): 1}), "b": Counter({(1, 0): 1, (2, 4): 1}), "c": Counter()},
    )
    check(plan, world)
    check(improve(plan), world)
