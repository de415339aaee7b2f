"""One call of a window as Spark SQL.

| frame | how |
|---|---|
| rows; range | Spark's own frames |
| groups | a range of the numbers of peers, which are counted first |
| range or groups, where peers have places | the first or last by a place counted first |
| with EXCLUDE | the frame collected with places, then without what is excluded |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Literal
from headrace.functions.aggregates import GroupRows
from headrace.functions.function import spark_cast, spark_function
from headrace.functions.intervals import DAY, parts_of
from headrace.functions.windows import OF_ALL_ROWS, WINDOW_FUNCTION_BY_NAME
from headrace.plan.operators import WHOLE, Frame, Window, WindowCall
from headrace.render.frames import groups_spec, over, range_over, rows_spec, some_order, sorted_by
from headrace.render.pieces import aliased
from headrace.render.scalars import column, identifier
from headrace.types import BIGINT

COPY = "_copy"
_EACH, _TOTAL = "each", "total"


def positions(plan: Window, call: WindowCall, number: int) -> list[exp.Expression]:
    """Return the columns that the call needs first: places of rows, numbers of groups of peers."""
    if call.frame is None or _first(plan, call) != number:
        return []
    alike = [c for c in plan.calls if (c.order, c.ties) == (call.order, call.ties)]
    counted: list[exp.Expression] = []
    if any(_by_place(c) for c in alike):
        place = over(spark_function("row_number"), plan.keys, _total_order(call))
        counted.append(aliased(spark_cast(place, BIGINT), _place(number)))
    if any(_by_group(c) for c in alike):
        order = some_order(sorted_by(call.order))
        group = over(spark_function("dense_rank"), plan.keys, order)
        counted.append(aliased(spark_cast(group, BIGINT), _group(number)))
    return counted


def _first(plan: Window, call: WindowCall) -> int:
    """Return the number under which the call's order is counted: that of the first such call."""
    orders = [(c.order, c.ties) if c.frame is not None else None for c in plan.calls]
    return orders.index((call.order, call.ties))


def _by_place(call: WindowCall) -> bool:
    frame = call.frame
    if frame is None:
        return False
    placed = WINDOW_FUNCTION_BY_NAME[call.function].placed
    if call.function in OF_ALL_ROWS:
        return placed
    return frame.exclude != "no others" or (placed and frame.mode != "rows")


def _by_group(call: WindowCall) -> bool:
    frame = call.frame
    return frame is not None and (frame.exclude != "no others" or frame.mode == "groups")


def _place(number: int) -> str:
    return f"_place{number}"


def _group(number: int) -> str:
    return f"_group{number}"


def _total_order(call: WindowCall) -> exp.Order:
    return sorted_by((*call.order, *call.ties), column(COPY))


def rendered_call(plan: Window, call: WindowCall) -> exp.Expression:
    """Return the call's value for each row, in its type."""
    value = _value(plan, call)
    return spark_cast(value, call.output.type) if call.output.type.is_number else value


def _value(plan: Window, call: WindowCall) -> exp.Expression:
    function = WINDOW_FUNCTION_BY_NAME[call.function]
    arguments = [column(argument.id) for argument in call.arguments]
    if call.frame is None:
        order = _total_order(call) if function.placed else sorted_by(call.order)
        order = some_order(order)
        return over(function.spark(arguments, call.number), plan.keys, order)
    if _is_empty(call.frame):
        return _of_nothing(call)
    if call.function in OF_ALL_ROWS:
        return _of_all_rows(plan, call, call.frame)
    if call.frame.exclude != "no others" or (_by_place(call) and call.function == "nth_value"):
        return _collected(plan, call, call.frame)
    if _by_place(call):
        name = "min_by" if call.function == "first_value" else "max_by"
        place = column(_place(_first(plan, call)))
        return _framed(spark_function(name, *arguments, place), plan, call, call.frame)
    value = _framed(function.spark(arguments, call.number), plan, call, call.frame)
    if call.function == "sum":
        return spark_function("coalesce", value, _of_nothing(call))
    return value


@dataclass(frozen=True)
class _FrameRows(GroupRows):
    """The rows of a frame; `place` is the column that they are sorted by, if that matters."""

    framed: Callable[[exp.Expression], exp.Expression] = lambda rows: rows
    place: str | None = None

    def call(self, name: str, *values: exp.Expression) -> exp.Expression:
        return self.framed(super().call(name, *values))

    def collected(self, row: exp.Expression) -> exp.Expression:
        rows = self.framed(super().collected(row))
        return rows if self.place is None else spark_function("array_sort", rows)

    def fields(self) -> list[exp.Expression]:
        first = [] if self.place is None else [exp.Literal.string("place"), column(self.place)]
        return [*first, *super().fields()]


def _of_all_rows(plan: Window, call: WindowCall, frame: Frame) -> exp.Expression:
    """Return an aggregate over the frame, as it is rendered over a group."""
    function = OF_ALL_ROWS[call.function]
    number = _first(plan, call)
    rows = _FrameRows(
        tuple(column(argument.id) for argument in call.arguments),
        tuple(argument.type for argument in call.arguments),
        function.needed,
        framed=lambda rows: _framed(rows, plan, call, frame),
        place=_place(number) if function.order == "written" else None,
    )
    return function.spark(rows, call.output.type)


def _framed(
    function: exp.Expression, plan: Window, call: WindowCall, frame: Frame
) -> exp.Expression:
    """Return the function over the call's frame, nothing excluded."""
    placed = WINDOW_FUNCTION_BY_NAME[call.function].placed
    if frame == WHOLE and not placed:
        return over(function, plan.keys)
    if frame.mode == "rows":
        return over(function, plan.keys, _total_order(call), rows_spec(frame))
    if frame.mode == "groups":
        number = column(_group(_first(plan, call)))
        return over(function, plan.keys, sorted_by((), number), groups_spec(frame))
    order, spec = range_over(frame, call.order)
    return over(function, plan.keys, some_order(order), spec)


def _is_empty(frame: Frame) -> bool:
    """Return whether the frame ends before it begins, whatever the row.

    Spark refuses such a frame.
    """
    start, end = frame.start, frame.end
    if start.kind != end.kind or start.offset is None or end.offset is None:
        return False
    near, far = sorted((_size(start.offset), _size(end.offset)))
    outer = start.offset if start.kind == "preceding" else end.offset
    return bool(near != far and _size(outer) == near)


def _size(offset: Literal) -> Any:
    """Return the value that offsets of one kind compare by."""
    if offset.type.kind != "interval":
        return offset.value
    assert isinstance(offset.value, str)
    parts = parts_of(offset.value)
    return (parts.months, parts.days * DAY + parts.micros)


def _of_nothing(call: WindowCall) -> exp.Expression:
    nothing = exp.Literal.number(0) if call.function == "sum" else exp.Null()
    return spark_cast(nothing, call.output.type)


def _collected(plan: Window, call: WindowCall, frame: Frame) -> exp.Expression:
    """Return the call's value from a list of the frame's rows, each with its place and group."""
    number = _first(plan, call)
    place, group = column(_place(number)), column(_group(number))
    fields = [aliased(place, "place"), aliased(column(call.arguments[0].id), "value")]
    if frame.exclude != "no others":
        fields.append(aliased(group, "peers"))
    listed = spark_function("collect_list", spark_function("struct", *fields))
    rows = _framed(listed, plan, call, frame)
    own = exp.EQ(this=_field("place"), expression=place.copy())
    peer = exp.EQ(this=_field("peers"), expression=group.copy())
    excluded = {
        "current row": own,
        "group": peer,
        "ties": exp.Paren(this=exp.and_(peer, exp.not_(own))),
    }
    if frame.exclude != "no others":
        included = exp.Not(this=exp.Paren(this=excluded[frame.exclude]))
        rows = spark_function("filter", rows, _lambda(included))
    return _of_list(call, rows)


def _of_list(call: WindowCall, rows: exp.Expression) -> exp.Expression:
    match call.function:
        case "sum":
            added = exp.Add(this=exp.Column(this=identifier(_TOTAL)), expression=_field("value"))
            step = exp.Lambda(
                this=spark_cast(added, call.output.type),
                expressions=[identifier(_TOTAL), identifier(_EACH)],
            )
            return spark_function("aggregate", rows, _of_nothing(call), step)
        case "min" | "max":
            values = spark_function("transform", rows, _lambda(_field("value")))
            return spark_function(f"array_{call.function}", values)
    ordered = spark_function("array_sort", rows)
    if call.function == "last_value":
        ordered = spark_function("reverse", ordered)
    place = call.number - 1 if call.number is not None else 0
    element = spark_function("get", ordered, exp.Literal.number(place))
    return exp.Dot(this=element, expression=identifier("value"))


def _field(name: str) -> exp.Expression:
    return exp.Dot(this=exp.Column(this=identifier(_EACH)), expression=identifier(name))


def _lambda(body: exp.Expression) -> exp.Expression:
    return exp.Lambda(this=body, expressions=[identifier(_EACH)])
