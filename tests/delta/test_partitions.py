"""Windows and tops: the change of a stage against its definition, on random bags."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.scalar import Column, Literal, Value
from headrace.delta.differentiate import stage_change
from headrace.functions import call
from headrace.functions.windows import OF_ALL_ROWS, WINDOW_FUNCTION_BY_NAME, has_places
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import (
    WHOLE,
    Aggregate,
    Filter,
    Frame,
    FrameBound,
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
from headrace.types import BIGINT, DOUBLE, INTEGER, Type
from tests.delta.test_rules_against_reference import (
    Names,
    World,
    aggregates,
    check,
    check_steps,
    filled,
    reader,
    refreshed,
    regions,
    worlds,
)
from tests.forms import examples

PRECEDING, FOLLOWING = FrameBound("unbounded preceding"), FrameBound("unbounded following")
CURRENT = FrameBound("current row")
FUNCTIONS = [*sorted({*WINDOW_FUNCTION_BY_NAME} - {*OF_ALL_ROWS}), "bit_xor"]
RESULTS: dict[str, Type] = {
    **dict.fromkeys(("row_number", "rank", "dense_rank", "sum"), BIGINT),
    **dict.fromkeys(("percent_rank", "cume_dist"), DOUBLE),
}


@st.composite
def orders(draw: st.DrawFn, columns: tuple[Column, ...]) -> tuple[SortKey, ...]:
    chosen = draw(st.lists(st.sampled_from(columns), unique=True, max_size=2))
    return tuple(SortKey(column, draw(st.booleans()), draw(st.booleans())) for column in chosen)


@st.composite
def frames(draw: st.DrawFn, order: tuple[SortKey, ...]) -> Frame:
    mode = draw(st.sampled_from(("rows", "range", "groups")))
    near = [Literal(draw(st.integers(0, 2)), BIGINT) for _ in range(2)]
    start = [PRECEDING, CURRENT]
    end = [CURRENT, FOLLOWING]
    if mode != "range" or len(order) == 1:
        start += [FrameBound("preceding", near[0]), FrameBound("following", near[0])]
        end += [FrameBound("following", near[1])]
    first = draw(st.sampled_from(start))
    if first.kind == "following":
        end = end[1:]
    exclude = draw(st.sampled_from(("no others", "current row", "group", "ties")))
    return Frame(mode, first, draw(st.sampled_from(end)), exclude)


@st.composite
def windows(draw: st.DrawFn, names: Names, child: Operator) -> Operator:
    """A window over a plan of integers, sometimes with a condition on a result."""
    integers = tuple(column for column in child.columns if column.type == INTEGER)
    if not integers:
        return child
    keys = tuple(draw(st.lists(st.sampled_from(integers), unique=True, max_size=2)))
    calls = []
    for name in draw(st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=3)):
        order = draw(orders(integers))
        function = WINDOW_FUNCTION_BY_NAME[name]
        takes = name in ("lag", "lead") or function.framed
        made = WindowCall(
            names.column(RESULTS.get(name, INTEGER)),
            name,
            (draw(st.sampled_from(integers)),) if takes else (),
            order,
            (),
            draw(frames(order)) if function.framed else None,
            draw(st.integers(1, 3)) if name in ("lag", "lead", "ntile", "nth_value") else None,
        )
        if has_places(made):
            made = replace(made, ties=tuple(map(SortKey, child.columns)))
        calls.append(made)
    window: Operator = Window(child, keys, tuple(calls))
    if draw(st.booleans()):
        tested = call(">", draw(st.sampled_from(calls)).output, Literal(1, INTEGER))
        window = Filter(window, tested)
    return window


@st.composite
def tops(draw: st.DrawFn, names: Names, child: Operator) -> Operator:
    keys = tuple(draw(st.lists(st.sampled_from(child.columns), unique=True, max_size=1)))
    order = draw(orders(child.columns))
    limit = draw(st.none() | st.integers(1, 3))
    ties = draw(st.booleans()) and limit is not None
    total = tuple(map(SortKey, child.columns))
    return Top(child, keys, order, total, limit, draw(st.integers(0, 2)), ties)


@st.composite
def plans(draw: st.DrawFn) -> Operator:
    names = Names()
    plan = draw(regions(names, 2))
    stateful = [windows, tops, aggregates]
    for _ in range(draw(st.integers(1, 3))):
        plan = draw(draw(st.sampled_from(stateful))(names, plan))
    return plan


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
