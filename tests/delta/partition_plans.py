"""Random plans of windows and tops."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from headrace.algebra.scalar import Column, Literal
from headrace.functions import call
from headrace.functions.windows import OF_ALL_ROWS, WINDOW_FUNCTION_BY_NAME, has_places
from headrace.plan.operators import (
    Filter,
    Frame,
    FrameBound,
    Operator,
    SortKey,
    Top,
    Window,
    WindowCall,
)
from headrace.types import BIGINT, DOUBLE, INTEGER, Type
from tests.delta.random_plans import Names, aggregates, regions

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
