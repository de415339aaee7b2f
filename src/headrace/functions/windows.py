"""Window functions: their rendering on Spark, and their evaluation.

`sum`, `min` and `max` are what aggregates over a frame are made of, as they are of the states that
`headrace.functions.aggregates` gives: a sum is 0 over no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Value
from headrace.algebra.window_call import WHOLE, WindowCall
from headrace.functions.aggregates import AGGREGATES, AggregateFunction
from headrace.functions.comparison import order_key
from headrace.functions.function import spark_function
from headrace.functions.numbers import fitted
from headrace.types import Type

Rendering = Callable[[Sequence[exp.Expression], int | None], exp.Expression]


@dataclass(frozen=True)
class Seen:
    """What a call sees for one row: its place, the peers, the arguments of all rows, the frame."""

    place: int
    groups: Sequence[int]
    arguments: Sequence[tuple[Value, ...]]
    frame: Sequence[int]
    number: int | None
    type: Type


@dataclass(frozen=True)
class WindowFunction:
    """One function of the operator Window.

    `framed` says that it sees a frame, `placed` that the order of peers matters to it. `spark`
    gives what stands before OVER.
    """

    name: str
    spark: Rendering
    evaluate: Callable[[Seen], Value]
    framed: bool = False
    placed: bool = False


def _plain(name: str) -> Rendering:
    return lambda arguments, _: spark_function(name, *arguments)


def _numbered(name: str) -> Rendering:
    """Return the rendering of a call with its constant after the first argument."""

    def spark(arguments: Sequence[exp.Expression], number: int | None) -> exp.Expression:
        first, rest = list(arguments[:1]), arguments[1:]
        return spark_function(name, *first, exp.Literal.number(number or 0), *rest)

    return spark


def _first_peer(seen: Seen) -> int:
    return seen.groups.index(seen.groups[seen.place])


def _percent_rank(seen: Seen) -> Value:
    others = len(seen.groups) - 1
    return _first_peer(seen) / others if others else 0.0


def _cume_dist(seen: Seen) -> Value:
    own = seen.groups[seen.place]
    return sum(group <= own for group in seen.groups) / len(seen.groups)


def _ntile(seen: Seen) -> Value:
    """Return the bucket; the first ones have a row more if the rows do not divide evenly."""
    assert seen.number is not None
    size, larger = divmod(len(seen.groups), seen.number)
    in_larger = larger * (size + 1)
    if seen.place < in_larger:
        return seen.place // (size + 1) + 1
    return larger + (seen.place - in_larger) // size + 1


def _shifted(sign: int) -> Callable[[Seen], Value]:
    def evaluate(seen: Seen) -> Value:
        assert seen.number is not None
        place = seen.place + sign * seen.number
        if 0 <= place < len(seen.arguments):
            return seen.arguments[place][0]
        own = seen.arguments[seen.place]
        return own[1] if len(own) > 1 else None

    return evaluate


def _nth(place: Callable[[Seen], int]) -> Callable[[Seen], Value]:
    def evaluate(seen: Seen) -> Value:
        index = place(seen)
        return seen.arguments[seen.frame[index]][0] if index < len(seen.frame) else None

    return evaluate


def _nth_place(seen: Seen) -> int:
    assert seen.number is not None
    return seen.number - 1


def _framed_values(seen: Seen) -> list[Any]:
    values = (seen.arguments[place][0] for place in seen.frame)
    return [value for value in values if value is not None]


def _sum(seen: Seen) -> Value:
    zero: Any = 0.0 if seen.type.is_float else 0 if seen.type.is_integer else Decimal(0)
    return fitted(sum(_framed_values(seen), zero), seen.type)


def _best(choose: Callable[..., Any]) -> Callable[[Seen], Value]:
    def evaluate(seen: Seen) -> Value:
        values = _framed_values(seen)
        best: Value = choose(values, key=order_key) if values else None
        return best

    return evaluate


WINDOW_FUNCTIONS: tuple[WindowFunction, ...] = (
    WindowFunction("row_number", _plain("row_number"), lambda s: s.place + 1, placed=True),
    WindowFunction("rank", _plain("rank"), lambda s: _first_peer(s) + 1),
    WindowFunction("dense_rank", _plain("dense_rank"), lambda s: s.groups[s.place] + 1),
    WindowFunction("percent_rank", _plain("percent_rank"), _percent_rank),
    WindowFunction("cume_dist", _plain("cume_dist"), _cume_dist),
    WindowFunction("ntile", _numbered("ntile"), _ntile, placed=True),
    WindowFunction("lag", _numbered("lag"), _shifted(-1), placed=True),
    WindowFunction("lead", _numbered("lead"), _shifted(1), placed=True),
    WindowFunction(
        "first_value", _plain("first_value"), _nth(lambda _: 0), framed=True, placed=True
    ),
    WindowFunction(
        "last_value",
        _plain("last_value"),
        lambda s: s.arguments[s.frame[-1]][0] if s.frame else None,
        framed=True,
        placed=True,
    ),
    WindowFunction(
        "nth_value",
        lambda arguments, number: spark_function(
            "nth_value", *arguments, exp.Literal.number(number or 0)
        ),
        _nth(_nth_place),
        framed=True,
        placed=True,
    ),
    WindowFunction("sum", _plain("sum"), _sum, framed=True),
    WindowFunction("min", _plain("min"), _best(min), framed=True),
    WindowFunction("max", _plain("max"), _best(max), framed=True),
)


def _aggregate(function: AggregateFunction) -> WindowFunction:
    """Return an aggregate that needs all rows of a frame; it has a rendering of its own."""

    def evaluate(seen: Seen) -> Value:
        rows = [seen.arguments[place] for place in seen.frame]
        inputs = [row for row in rows if not any(v is None for v in row[: function.needed])]
        return function.evaluate(inputs, seen.type)

    placed = function.order == "written"
    return WindowFunction(function.name, _plain(function.name), evaluate, True, placed)


OF_ALL_ROWS: dict[str, AggregateFunction] = {
    function.name: function
    for function in AGGREGATES
    if function.order != "within" and function.name not in ("count", "sum", "avg", "min", "max")
}
"""Aggregates that may keep nothing of a group."""
WINDOW_FUNCTIONS += tuple(map(_aggregate, OF_ALL_ROWS.values()))
WINDOW_FUNCTION_BY_NAME = {function.name: function for function in WINDOW_FUNCTIONS}


def has_places(call: WindowCall) -> bool:
    """Return whether a call depends on which of several peers comes first."""
    if WINDOW_FUNCTION_BY_NAME[call.function].placed:
        return True
    frame = call.frame
    if frame is None or frame == WHOLE:
        return False
    return frame.mode == "rows" or frame.exclude in ("current row", "ties")
