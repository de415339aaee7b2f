"""Left, semi, anti and full joins, nested to any depth: their change and the passes over them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.delta.differentiate import relations_of
from headrace.functions import call
from headrace.plan.evaluate import evaluate, net
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    FullJoin,
    Join,
    MatchJoin,
    Operator,
    Project,
    Scan,
)
from headrace.plan.passes import improve
from headrace.plan.rename import numbered, renamed
from headrace.plan.stages import cut_stages
from headrace.types import BIGINT, INTEGER
from tests.delta.test_rules_against_reference import (
    RELATIONS,
    Names,
    World,
    check,
    conditions,
    reader,
    row,
)
from tests.forms import examples

few = st.lists(row, max_size=4).map(Counter)


@st.composite
def small_worlds(draw: st.DrawFn) -> World:
    """A few rows each, so that joins above joins stay cheap; any of them may change at once."""
    before = {relation: draw(few) for relation in RELATIONS}
    return World(before, {r: draw(few) if draw(st.booleans()) else before[r] for r in RELATIONS})


@st.composite
def match_conditions(draw: st.DrawFn, left: Operator, right: Operator) -> Scalar | None:
    """None, or up to two conjuncts over both sides; most often they are compared with each other.

    Some can raise, as far as anyone can tell.
    """
    a, b = st.sampled_from(left.columns), st.sampled_from(right.columns)
    equal = st.builds(lambda x, y: call("=", x, y), a, b)
    one = Literal(1, INTEGER)
    moved = st.sampled_from(
        [
            lambda x: call("+", x, one),
            lambda x: call("-", x, one),
            lambda x: call("-", one, x),
            lambda x: call("*", x, x),
        ]
    )
    next_to = st.builds(
        lambda x, y, f, g: call("=", f(x), g(y)), a, b, moved, moved | st.just(lambda y: y)
    )
    term = st.one_of(equal, equal, equal, next_to, conditions(left.columns + right.columns))
    first = draw(st.one_of(st.none(), *[term] * 5))
    return first if first is None or draw(st.booleans()) else call("and", first, draw(term))


@st.composite
def matches(draw: st.DrawFn, names: Names, depth: int) -> Operator:
    """Joins of all kinds above each other, some with filters and groups between."""
    kinds = ["match", "match", "match", "full", "join", "filter", "group"]
    match draw(st.sampled_from(kinds)) if depth else "scan":
        case "scan":
            relation = draw(st.sampled_from(RELATIONS))
            return Scan(relation, (("c1", names.column()), ("c2", names.column())))
        case "filter":
            child = draw(matches(names, depth - 1))
            return Filter(child, draw(conditions(child.columns)))
        case "group":
            child = draw(matches(names, depth - 1))
            keys = draw(st.lists(st.sampled_from(child.columns), min_size=1, unique=True))
            return Aggregate(child, tuple(keys), ())
        case kind:
            left = draw(matches(names, depth - 1))
            right = draw(matches(names, draw(st.integers(0, depth - 1))))
            condition = draw(match_conditions(left, right))
            if kind == "join":
                return Join(left, right, condition)
            if kind == "full":
                return FullJoin(left, right, condition)
            way = draw(st.sampled_from(("left", "semi", "anti")))
            return MatchJoin(left, right, way, condition)


@st.composite
def plans(draw: st.DrawFn, depth: int = 4) -> Operator:
    """Narrow at the top, so that rows meet."""
    names = Names()
    plan = draw(matches(names, draw(st.integers(1, depth))))
    shown = draw(st.lists(st.sampled_from(plan.columns), min_size=1, max_size=3, unique=True))
    return Project(plan, tuple((names.column(), column) for column in shown))


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
    return MatchJoin(left, right, "left", on)


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
        FullJoin(LEFT, RIGHT, on) if kind == "full" else MatchJoin(LEFT, RIGHT, kind, on)  # type: ignore[arg-type]
    )
    world = World(
        before={"a": Counter({(1, 6): 1}), "b": Counter({(1, 3): 1}), "c": Counter()},
        after={"a": Counter({(2, 8): 1}), "b": Counter({(1, 0): 1, (2, 4): 1}), "c": Counter()},
    )
    check(plan, world)
    check(improve(plan), world)
