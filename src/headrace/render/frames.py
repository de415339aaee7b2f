"""OVER (…) as Spark SQL: partitions, orders and frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from headrace.algebra.scalar import Column, Literal
from headrace.functions.decimals import digits_before_point
from headrace.functions.function import spark_cast
from headrace.functions.intervals import parts_of
from headrace.functions.numbers import as_numeric
from headrace.plan.operators import Frame, FrameBound, SortKey
from headrace.render.pieces import bigint
from headrace.render.scalars import column, render_scalar
from headrace.types import BIGINT, DOUBLE, Type, result_numeric

Side = tuple[str | exp.Expression, str | None]
Spec = tuple[str, Side, Side]
"""ROWS or RANGE, and where the frame begins and ends."""

LARGEST_ROWS = 2**31 - 1
LARGEST_GROUPS = 2**40
"""No partition has so many rows, so that a larger offset means the same."""


def over(
    function: exp.Expression,
    keys: Sequence[Column],
    order: exp.Order | None = None,
    spec: Spec | None = None,
) -> exp.Expression:
    """Return the function over a window."""
    window_spec = None
    if spec is not None:
        kind, (start, start_side), (end, end_side) = spec
        window_spec = exp.WindowSpec(
            kind=kind, start=start, start_side=start_side, end=end, end_side=end_side
        )
    return exp.Window(
        this=function,
        partition_by=[column(key.id) for key in keys],
        order=order if order is None or order.expressions else None,
        spec=window_spec,
    )


def sorted_by(order: Sequence[SortKey], *last: exp.Expression) -> exp.Order:
    """Return the sort keys, then what decides last, ascending."""
    keys = [_ordered(column(k.column.id), k.descending, k.nulls_first) for k in order]
    return exp.Order(expressions=[*keys, *(_ordered(each) for each in last)])


def some_order(order: exp.Order) -> exp.Order:
    """Return the order, or a constant one: Spark numbers rows in an order only."""
    return order if order.expressions else sorted_by((), bigint(1))


def _ordered(
    value: exp.Expression, descending: bool = False, nulls_first: bool = False
) -> exp.Ordered:
    return exp.Ordered(this=value, desc=descending, nulls_first=nulls_first)


def rows_spec(frame: Frame) -> Spec:
    """Return a frame that counts rows."""

    def offset(literal: Literal) -> exp.Expression:
        assert isinstance(literal.value, int)
        return exp.Literal.number(min(literal.value, LARGEST_ROWS))

    return ("ROWS", _side(frame.start, offset), _side(frame.end, offset))


def groups_spec(frame: Frame) -> Spec:
    """Return a frame that counts groups of peers, as a range of their numbers."""

    def offset(literal: Literal) -> exp.Expression:
        assert isinstance(literal.value, int)
        return spark_cast(exp.Literal.number(min(literal.value, LARGEST_GROUPS)), BIGINT)

    return ("RANGE", _side(frame.start, offset), _side(frame.end, offset))


def range_over(frame: Frame, order: Sequence[SortKey]) -> tuple[exp.Order, Spec]:
    """Return a frame by values.

    The frame has sort keys, and bounds as distances from its only key.
    """
    offsets = [b.offset for b in (frame.start, frame.end) if b.offset is not None]
    if not offsets:
        sides = _side(frame.start, render_scalar), _side(frame.end, render_scalar)
        return sorted_by(order), ("RANGE", *sides)
    (key,) = order
    wide = _wide(key.column.type, *(offset.type for offset in offsets))

    def distance(literal: Literal) -> exp.Expression:
        if literal.type.kind == "interval":
            assert isinstance(literal.value, str)
            return _interval(literal.value)
        return spark_cast(render_scalar(literal), wide)

    value: exp.Expression = column(key.column.id)
    if wide != key.column.type:
        value = spark_cast(value, wide)
    sorted_ = exp.Order(expressions=[_ordered(value, key.descending, key.nulls_first)])
    return sorted_, ("RANGE", _side(frame.start, distance), _side(frame.end, distance))


def _wide(key: Type, *offsets: Type) -> Type:
    """Return a type in which distances from the key neither overflow nor lose digits."""
    if key.is_float:
        return DOUBLE
    if key.is_integer:
        return result_numeric(20, 0)
    if key.kind == "numeric":
        types = (key, *map(as_numeric, offsets))
        scale = max(type_.scale or 0 for type_ in types)
        return result_numeric(max(map(digits_before_point, types)) + 1 + scale, scale)
    return Type("timestamp") if key.kind == "date" else key


def _interval(text: str) -> exp.Expression:
    """Return an interval of months alone, or of days and time: Spark has no interval of both."""
    parts = parts_of(text)
    if parts.months:
        return _spelled(str(parts.months), "MONTH")
    seconds, micros = divmod(parts.micros, 1_000_000)
    hours, rest = divmod(seconds, 3600)
    days = parts.days + hours // 24
    time = f"{hours % 24:02d}:{rest // 60:02d}:{rest % 60:02d}.{micros:06d}"
    return _spelled(f"{days} {time}", "DAY", "SECOND")


def _spelled(value: str, unit: str, last: str | None = None) -> exp.Expression:
    span: exp.Expression = exp.Var(this=unit)
    if last is not None:
        span = exp.IntervalSpan(this=exp.Var(this=unit), expression=exp.Var(this=last))
    return exp.Interval(this=exp.Literal.string(value), unit=span)


def _side(bound: FrameBound, offset: Callable[[Literal], exp.Expression]) -> Side:
    if bound.kind == "current row":
        return ("CURRENT ROW", None)
    name = "PRECEDING" if bound.kind.endswith("preceding") else "FOLLOWING"
    return ("UNBOUNDED" if bound.offset is None else offset(bound.offset), name)
