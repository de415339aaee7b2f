"""Random plans of left, semi, anti and full joins, and small worlds for them."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions import call
from headrace.plan.operators import (
    Aggregate,
    Filter,
    FullJoin,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Scan,
)
from headrace.types import INTEGER
from tests.delta.random_plans import Names, conditions
from tests.delta.worlds import RELATIONS, World, row

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
            return OuterSemiAntiJoin(left, right, way, condition)


@st.composite
def plans(draw: st.DrawFn, depth: int = 4) -> Operator:
    """Narrow at the top, so that rows meet."""
    names = Names()
    plan = draw(matches(names, draw(st.integers(1, depth))))
    shown = draw(st.lists(st.sampled_from(plan.columns), min_size=1, max_size=3, unique=True))
    return Project(plan, tuple((names.column(), column) for column in shown))
