"""Equalities that follow from each other: joins have the ones that they need, and no more."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.functions import call, chain
from headrace.plan.evaluate import evaluate, net
from headrace.plan.operators import Filter, Join, Operator, OuterSemiAntiJoin, Project, Scan
from headrace.plan.passes import improve, push_filters, span_equalities
from headrace.plan.passes.push_filters import conjuncts
from headrace.types import BIGINT, DOUBLE, INTEGER
from tests.delta.join_plans import small_worlds
from tests.delta.random_plans import Names
from tests.delta.stage_logs import check, reader
from tests.delta.worlds import RELATIONS, World
from tests.forms import examples


def relation(name: str) -> Scan:
    columns = Column(f"{name}1", INTEGER), Column(f"{name}2", INTEGER)
    return Scan(name, (("c1", columns[0]), ("c2", columns[1])))


T, C, K = relation("t"), relation("c"), relation("k")


def on(one: Scan, other: Scan, first: int = 0, second: int = 0) -> Scalar:
    return call("=", one.columns[first], other.columns[second])


def spanned(plan: Operator) -> Operator:
    return span_equalities(push_filters(plan))


def conditions(plan: Operator) -> list[Scalar]:
    """All conditions of a plan, the lowest first."""
    below = [term for child in plan.children for term in conditions(child)]
    return below + [term for scalar in plan.scalars for term in conjuncts(scalar)]


def test_a_cycle_of_equalities_is_a_tree() -> None:
    every = chain("and", [on(T, C), on(T, K), on(C, K)])
    plan = spanned(Filter(Join(Join(T, C), K), every))
    assert conditions(plan) == [on(T, C), on(T, K)]


def test_every_join_is_connected() -> None:
    """T and C are connected through K alone, as written."""
    plan = spanned(Filter(Join(Join(T, C), K), chain("and", [on(T, K), on(C, K)])))
    assert conditions(plan) == [on(T, C), on(T, K)]


def test_an_input_compares_its_own_columns() -> None:
    plan = spanned(Filter(Join(T, C), chain("and", [on(T, C), on(T, C, 1)])))
    assert isinstance(plan, Join)
    assert conditions(plan.left) == [call("=", *T.columns)]
    assert conditions(plan) == [call("=", *T.columns), on(T, C)]


def test_a_constant_is_asked_of_all() -> None:
    five = Literal(5, INTEGER)
    every = chain("and", [on(T, C), on(C, K), call("=", K.columns[0], five)])
    plan = spanned(Filter(Join(Join(T, C), K), every))
    assert {call("=", one.columns[0], five) for one in (T, C, K)} <= set(conditions(plan))


def test_equalities_that_meet_below_an_outer_join_are_followed_there() -> None:
    """That T's columns are equal is found at the join, and that one is 5 below the outer join."""
    five = Literal(5, INTEGER)
    padded = OuterSemiAntiJoin(T, K, "left", on(T, K))
    every = chain("and", [on(T, C), on(T, C, 1), call("=", T.columns[0], five)])
    plan = spanned(Filter(Join(padded, C), every))
    assert call("=", T.columns[1], five) in conditions(plan)
    assert span_equalities(plan) == plan


def test_what_is_needed_as_written_stays_as_it_is() -> None:
    every = chain("and", [on(C, T), on(K, T, 1, 1), call("<", T.columns[0], K.columns[0])])
    plan = push_filters(Filter(Join(Join(T, C), K), every))
    assert span_equalities(plan) == plan


def test_only_equality_that_is_transitive_is_followed() -> None:
    """Two integers beyond 2^53 equal one float, and not each other."""
    number = Scan("f", (("c1", Column("f1", DOUBLE)),))
    every = chain("and", [on(T, number), call("=", number.columns[0], C.columns[0])])
    plan = push_filters(Filter(Join(Join(T, number), C), every))
    assert span_equalities(plan) == plan
    safe = call("is not distinct from", T.columns[0], C.columns[0])
    plan = push_filters(Filter(Join(Join(T, C), K), chain("and", [safe, on(C, K), on(C, K)])))
    assert safe in conditions(span_equalities(plan))


def test_a_column_that_equals_itself_is_not_null() -> None:
    plan = spanned(Filter(Join(T, C), chain("and", [on(T, T), on(T, C)])))
    assert on(T, T) in conditions(plan)


@st.composite
def graphs(draw: st.DrawFn) -> Operator:
    """Inner joins of up to five tables whose equalities are any graph, with loops and repeats."""
    names = Names()
    leaves: list[Operator] = []
    for _ in range(draw(st.integers(2, 4))):
        columns = names.column(), names.column(draw(st.sampled_from((INTEGER, BIGINT))))
        scan = Scan(draw(st.sampled_from(RELATIONS)), (("c1", columns[0]), ("c2", columns[1])))
        leaves.append(scan)
    if draw(st.booleans()):
        outer = Scan("b", (("c1", names.column()), ("c2", names.column())))
        kind = draw(st.sampled_from(("left", "semi", "anti")))
        tested = call("=", leaves[0].columns[0], outer.columns[0])
        leaves[0] = OuterSemiAntiJoin(leaves[0], outer, kind, tested)
    tree = leaves[0]
    for leaf in leaves[1:]:
        tree = Join(tree, leaf) if draw(st.booleans()) else Join(leaf, tree)
    columns = st.sampled_from(tree.columns)
    equal = st.builds(lambda a, b: call("=", a, b), columns, columns)
    fixed = st.builds(lambda a, n: call("=", a, Literal(n, INTEGER)), columns, st.integers(-1, 1))
    safe = st.builds(lambda a, b: call("is not distinct from", a, b), columns, columns)
    less = st.builds(lambda a, b: call("<", a, b), columns, columns)
    term = st.one_of(*[equal] * 5, fixed, safe, less)
    # Few pairs are left, or a product of five tables would take too long.
    chained = [call("=", a.columns[0], b.columns[0]) for a, b in pairwise(leaves)]
    given = draw(st.permutations([*chained, *draw(st.lists(term, max_size=5))]))
    shown = draw(st.lists(columns, min_size=1, max_size=3, unique=True))
    plan = Filter(tree, chain("and", given))
    return Project(plan, tuple((names.column(column.type), column) for column in shown))


@settings(max_examples=examples(150), deadline=None)
@given(graphs(), small_worlds())
def test_the_rows_stay_the_same(plan: Operator, world: World) -> None:
    read = reader(World(world.after, world.after), {})
    expected = net(Counter(evaluate(push_filters(plan), read)))
    assert net(Counter(evaluate(spanned(plan), read))) == expected
    better = improve(plan)
    assert net(Counter(evaluate(better, read))) == expected
    assert improve(better) == better


@settings(max_examples=examples(100), deadline=None)
@given(graphs(), small_worlds())
def test_changes_are_followed(plan: Operator, world: World) -> None:
    check(improve(plan), world)
