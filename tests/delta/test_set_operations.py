"""INTERSECT and EXCEPT, and operators that make rows: against their definitions on random bags."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Literal as OneOf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.scalar import Call, Column, Literal, Subquery
from headrace.delta.differentiate import stage_change
from headrace.delta.nets import guard_errors
from headrace.functions import call, cast
from headrace.lower import lower
from headrace.lower.set_operations import as_matches
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import (
    Aggregate,
    Empty,
    Filter,
    Join,
    Net,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Replicate,
    Scan,
    Unnest,
    Values,
)
from headrace.plan.passes import improve
from headrace.plan.stages import cut_stages
from headrace.plan.surface_operators import SetOperation
from headrace.query.identifiers import ColumnIds
from headrace.types import BIGINT, INTEGER
from tests.delta.random_plans import Names, aggregates, conditions, regions
from tests.delta.stage_logs import check, filled, reader, refreshed, shown, whole
from tests.delta.worlds import World, worlds
from tests.forms import examples

KINDS = ("intersect", "intersect all", "except", "except all")
X = Column("left_x", INTEGER)
Y = Column("left_y", INTEGER)


def written(kind: str, left: Operator, right: Operator) -> SetOperation:
    word: OneOf["except", "intersect"] = "except" if kind.startswith("except") else "intersect"
    return SetOperation(left, right, word, once=not kind.endswith("all"))


def combined(kind: str, left: Operator, right: Operator) -> Operator:
    return lower(written(kind, left, right), ColumnIds().computed)


def expected(kind: str, left: Bag, right: Bag) -> Bag:
    """The definition, on counts."""
    rows = {row for row in left if left[row] > 0}
    match kind:
        case "intersect":
            return Counter(dict.fromkeys((row for row in rows if right[row]), 1))
        case "intersect all":
            return left & right
        case "except":
            return Counter(dict.fromkeys((row for row in rows if not right[row]), 1))
        case _:
            return left - right


@st.composite
def sides(draw: st.DrawFn) -> tuple[Operator, Operator]:
    """Two regions with the same two columns."""
    names = Names()
    found = []
    for _ in range(2):
        region = draw(regions(names, 2))
        first, second = (draw(st.sampled_from(region.columns)) for _ in range(2))
        found.append(Project(region, ((X, first), (Y, second))))
    return found[0], found[1]


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(KINDS), sides(), worlds())
def test_a_set_operation(kind: str, both: tuple[Operator, Operator], world: World) -> None:
    plan = combined(kind, *both)
    read = reader(World(world.after, world.after), {})
    left, right = (net(evaluate(side, read)) for side in both)
    assert net(evaluate(written(kind, *both), read)) == expected(kind, left, right)
    assert net(evaluate(plan, read)) == expected(kind, left, right)
    check(plan, world)
    check(improve(plan), world)


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(KINDS), st.sampled_from(KINDS), sides(), worlds())
def test_set_operations_on_each_other(
    inner: str, outer: str, both: tuple[Operator, Operator], world: World
) -> None:
    left, right = both
    turned = Project(right, ((X, Y), (Y, X)))
    nested = written(outer, written(inner, left, right), turned)
    check(lower(nested, ColumnIds().computed), world)


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(("intersect", "except")), st.sampled_from(KINDS), sides(), worlds())
def test_a_set_operation_as_matches(
    outer: str, inner: str, both: tuple[Operator, Operator], world: World
) -> None:
    """What a loop maintains: the same rows without counting, wherever the operation stands."""
    left, right = both
    turned = Project(right, ((X, Y), (Y, X)))
    plan = written(outer, left, written(inner, turned, left))
    ids = ColumnIds()
    matches = as_matches(plan, ids.computed)
    assert [one.once for one in set_operations(matches)] == [False] * inner.endswith("all")
    read = reader(World(world.after, world.after), {})
    assert matches.columns == plan.columns
    assert net(evaluate(matches, read)) == net(evaluate(plan, read))
    lowered = improve(lower(matches, ids.computed))
    assert net(evaluate(lowered, read)) == net(evaluate(plan, read))
    check(lowered, world)


def set_operations(plan: Operator) -> list[SetOperation]:
    own = [plan] if isinstance(plan, SetOperation) else []
    return own + [found for child in plan.children for found in set_operations(child)]


def test_a_set_operation_inside_a_subquery_as_matches() -> None:
    a, b = (Scan(name, (("c1", Column(f"{name}1", INTEGER)),)) for name in "ab")
    inner = written("except", Project(a, ((X, a.columns[0]),)), Project(b, ((X, b.columns[0]),)))
    outside = Scan("c", (("c1", Y),))
    condition = call("not", Subquery("exists", inner))
    found = as_matches(Filter(outside, condition), ColumnIds().computed)
    assert isinstance(found, Filter) and isinstance(found.condition, Call)
    (subquery,) = found.condition.arguments
    assert isinstance(subquery, Subquery)
    assert isinstance(subquery.plan, Aggregate) and isinstance(
        subquery.plan.child, OuterSemiAntiJoin
    )


STEPS: list[tuple[list[int], list[int]]] = [
    ([], []),
    ([1, 1], []),
    ([1, 1], [1]),
    ([1, 1], [1, 1, 1]),
    ([1], [1, 1, 1]),
    ([1], []),
    ([], []),
    ([], [1]),
    ([1], [1]),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_comes_on_one_side_then_on_the_other_and_goes(kind: str) -> None:
    """Every step is one epoch; what is stored at its end is what the definition says."""
    left = Project(Scan("a", (("c1", Column("p", INTEGER)),)), ((X, Column("p", INTEGER)),))
    right = Project(Scan("b", (("c1", Column("q", INTEGER)),)), ((X, Column("q", INTEGER)),))
    stages = cut_stages(combined(kind, left, right), "x")
    at = _bags(*STEPS[0])
    logs = filled(stages, World(at, at))
    for lefts, rights in STEPS[1:]:
        after = _bags(lefts, rights)
        logs, _ = refreshed(stages, World(at, after), logs)
        at = after
        right_rows = Counter((value,) for value in rights)
        left_rows = Counter((value,) for value in lefts)
        assert shown(stages[-1], whole(logs["x"])) == expected(kind, left_rows, right_rows)
    assert len(stages) == (2 if kind.endswith("all") else 1)


def _bags(left: list[int], right: list[int]) -> dict[str, Bag]:
    rows = {"a": left, "b": right, "c": []}
    return {name: Counter((value, None) for value in values) for name, values in rows.items()}


@st.composite
def making_rows(draw: st.DrawFn) -> Operator:
    """A region with functions, constants and repetition on it, sometimes grouped."""
    names = Names()
    plan = draw(regions(names, 2))
    for _ in range(draw(st.integers(1, 3))):
        plan = _making(draw, names, plan)
    return draw(aggregates(names, plan)) if draw(st.booleans()) else plan


def _making(draw: st.DrawFn, names: Names, plan: Operator) -> Operator:
    integers = tuple(column for column in plan.columns if column.type == INTEGER)
    first, second = (draw(st.sampled_from(integers)) for _ in range(2))
    number = draw(st.none() | st.just(names.column(BIGINT)))
    keep = draw(st.booleans())
    match draw(st.sampled_from(["series", "rows", "times", "values", "left values"])):
        case "series":
            step = Literal(draw(st.sampled_from([1, 2, -1])), INTEGER)
            arguments = (first, second, step)
            return Unnest(plan, "generate_series", arguments, (names.column(),), number, keep)
        case "rows":
            cells = (first, Literal(1, INTEGER), second, Literal(None, INTEGER))
            return Unnest(plan, "rows", cells, (names.column(), names.column()), number, keep)
        case "times":
            some = call("case", call(">", first, Literal(0, INTEGER)), first, Literal(1, INTEGER))
            return Replicate(plan, cast(some, BIGINT))
        case "values":
            constants = _constants(names)
            both = plan.columns[:1] + constants.columns
            return Join(plan, constants, draw(st.none() | conditions(both)))
        case _:
            constants = _constants(names)
            test = call("=", constants.columns[1], first)
            return OuterSemiAntiJoin(constants, plan, "left", test)


def _constants(names: Names) -> Values:
    one, none = Literal(1, INTEGER), Literal(None, INTEGER)
    return Values((names.column(), names.column()), ((one, none), (one, one), (one, one)))


@settings(max_examples=examples(300), deadline=None)
@given(making_rows(), worlds())
def test_operators_that_make_rows(plan: Operator, world: World) -> None:
    check(plan, world)
    better = improve(plan)
    assert better.columns == plan.columns
    read = reader(World(world.after, world.after), {})
    assert net(evaluate(better, read)) == net(evaluate(plan, read))
    check(better, world)


def test_a_function_that_can_raise_sees_only_rows_that_are_there() -> None:
    """A step of zero that came and went again is no error."""
    start, step, row = (Column(name, INTEGER) for name in ("start", "step", "row"))
    state = Scan("a", (("c1", start), ("c2", step)), "after")
    series = Unnest(state, "generate_series", (start, start, step), (row,))
    assert guard_errors(series) == replace(series, child=Net(state))
    cells = Unnest(state, "rows", (start, step), (row,))
    assert guard_errors(cells) == cells


def test_rows_of_constants_do_not_change() -> None:
    names = Names()
    constants = _constants(names)
    (stage,) = cut_stages(constants, "x")
    assert isinstance(stage_change(stage, frozenset({"a"})), Empty)
