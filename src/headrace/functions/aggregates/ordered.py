"""Aggregates of rows in an order: ARRAY_AGG, STRING_AGG, percentiles and MODE.

They need all rows of a group, so groups are recomputed when touched.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Value
from headrace.functions.aggregates.aggregate import AggregateFunction, GroupRows, Inputs, field
from headrace.functions.comparison import order_key
from headrace.functions.function import spark_cast, spark_function
from headrace.functions.spark import bound, case, long, minus, number, plus, string, times
from headrace.types import BIGINT, DOUBLE, INTEGER, Type, array_of, has_arrays

Expression = exp.Expression


def _joined_type(argument: Type | None, separator: Type | None = None) -> Type | None:
    texts = (argument, separator)
    if not all(type_ is not None and type_.kind == "text" for type_ in texts):
        return None
    assert argument is not None and separator is not None
    return Type(
        "text",
        ordered=argument.ordered and separator.ordered,
        folds=argument.folds and separator.folds,
    )


def _joined(inputs: Inputs, _: Type) -> Value:
    """Return each value but the first after its own separator; a separator may be NULL."""
    if not inputs:
        return None
    pieces: list[Any] = []
    for value, separator in inputs:
        pieces += (separator or "", value)
    return "".join(pieces[1:])


def _spark_joined(rows: GroupRows, type_: Type) -> Expression:
    def joined(values: Expression) -> Expression:
        separator = spark_function("coalesce", field("x", "a2"), string(""))
        first = exp.EQ(this=exp.Column(this=exp.to_identifier("i")), expression=number(0))
        piece = spark_function("concat", case(first, string(""), separator), field("x", "a1"))
        names = [exp.to_identifier(name) for name in ("x", "i")]
        pieces = spark_function("transform", values, exp.Lambda(this=piece, expressions=names))
        return _unless_empty(values, spark_function("array_join", pieces, string("")), type_)

    return bound((rows.array(),), joined)


def _unless_empty(values: Expression, result: Expression, type_: Type) -> Expression:
    empty = exp.EQ(this=spark_function("size", values.copy()), expression=number(0))
    return case(empty, spark_cast(exp.Null(), type_), result)


def _sorted_type(argument: Type | None, *_: Type) -> Type | None:
    """Return a type that can be sorted, without digits or length of its own."""
    if argument is None or argument.comparison != "ordered":
        return None
    return argument.without_length


def _fraction(inputs: Inputs) -> float | None:
    value = inputs[0][1]
    assert value is None or isinstance(value, float)
    return value


def _discrete(inputs: Inputs, _: Type) -> Value:
    if not inputs or _fraction(inputs) is None:
        return None
    place = math.ceil((_fraction(inputs) or 0.0) * len(inputs))
    return inputs[max(place, 1) - 1][0]


def _continuous(inputs: Inputs, _: Type) -> Value:
    if not inputs or _fraction(inputs) is None:
        return None
    values: list[Any] = [row[0] for row in inputs]
    place = (_fraction(inputs) or 0.0) * (len(values) - 1)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    if math.floor(place) == math.ceil(place):
        return float(low)
    return float(low + (place - math.floor(place)) * (high - low))


def _value_at(values: Expression, place: Expression) -> Expression:
    """Return the value at a place counted from 1."""
    element = spark_function("element_at", values.copy(), spark_cast(place, INTEGER))
    return _field(element, "a1")


def _field(struct: Expression, name: str) -> Expression:
    return exp.Dot(this=struct, expression=exp.to_identifier(name))


def _spark_fraction(values: Expression) -> Expression:
    first = spark_function("element_at", values.copy(), number(1))
    return _field(first, "a2")


def _spark_discrete(rows: GroupRows, type_: Type) -> Expression:
    def percentile(values: Expression) -> Expression:
        size = spark_cast(spark_function("size", values.copy()), DOUBLE)
        place = spark_function("ceil", times(_spark_fraction(values), size))
        at_least = spark_function("greatest", spark_cast(place, BIGINT), long(number(1)))
        missing = exp.Is(this=_spark_fraction(values), expression=exp.Null())
        value = case(missing, exp.Null(), _value_at(values, at_least))
        return _unless_empty(values, value, type_)

    return bound((rows.array(),), percentile)


def _spark_continuous(rows: GroupRows, type_: Type) -> Expression:
    def percentile(values: Expression) -> Expression:
        last = minus(spark_function("size", values.copy()), number(1))
        place = times(_spark_fraction(values), spark_cast(last, DOUBLE))
        value = bound((values, place), between)
        missing = exp.Is(this=_spark_fraction(values), expression=exp.Null())
        return _unless_empty(values, case(missing, exp.Null(), value), type_)

    def between(values: Expression, place: Expression) -> Expression:
        floor = long(spark_function("floor", place.copy()))
        ceiling = long(spark_function("ceil", place.copy()))
        low = _value_at(values, plus(floor, number(1)))
        high = _value_at(values, plus(ceiling, number(1)))
        share = minus(place.copy(), spark_cast(floor.copy(), DOUBLE))
        mixed = plus(low, times(share, minus(high, low.copy())))
        same = exp.EQ(this=floor.copy(), expression=ceiling.copy())
        return case(same, low.copy(), mixed)

    return bound((rows.array(),), percentile)


def _most_frequent(inputs: Inputs, _: Type) -> Value:
    """Return the first in order of the most frequent values."""
    best: Value = None
    times_ = run = 0
    last: Value = None
    for (value,) in inputs:
        run = run + 1 if run and order_key(value) == order_key(last) else 1
        last = value
        if run > times_:
            best, times_ = value, run
    return best


def _spark_most_frequent(rows: GroupRows, type_: Type) -> Expression:
    def state(*values: Expression) -> Expression:
        fields = zip(("best", "times", "last", "run"), values, strict=True)
        return spark_function(
            "named_struct", *(part for name, value in fields for part in (string(name), value))
        )

    value = field("x", "a1")
    goes_on = exp.NullSafeEQ(this=value, expression=field("total", "last"))
    run = case(goes_on, plus(field("total", "run"), number(1)), number(1))
    better = exp.GT(this=run, expression=field("total", "times"))
    step = state(
        case(better, value.copy(), field("total", "best")),
        spark_function("greatest", run.copy(), field("total", "times")),
        value.copy(),
        run.copy(),
    )
    nothing = spark_cast(exp.Null(), type_)
    start = state(nothing, number(0), nothing.copy(), number(0))
    names = [exp.to_identifier(name) for name in ("total", "x")]
    return spark_function(
        "aggregate",
        rows.array(),
        start,
        exp.Lambda(this=step, expressions=names),
        exp.Lambda(this=field("total", "best"), expressions=[names[0].copy()]),
    )


def _within(
    name: str,
    type_of: Callable[..., Type | None],
    evaluate: Callable[[Inputs, Type], Value],
    spark: Callable[[GroupRows, Type], Expression],
    fraction: str,
    takes: Type | None = None,
) -> AggregateFunction:
    syntax = f"{name}({fraction}) WITHIN GROUP (ORDER BY a)"
    arguments = 2 if fraction else 1
    return AggregateFunction(
        name, type_of, evaluate, spark, syntax, arguments=arguments, order="within", takes=takes
    )


def _middle_type(argument: Type | None, *_: Type) -> Type | None:
    return DOUBLE if argument == DOUBLE else None


ORDERED: tuple[AggregateFunction, ...] = (
    AggregateFunction(
        "string_agg",
        _joined_type,
        _joined,
        _spark_joined,
        "string_agg(a, b ORDER BY c)",
        arguments=2,
        order="written",
    ),
    _within("percentile_cont", _middle_type, _continuous, _spark_continuous, "p", DOUBLE),
    _within("percentile_disc", _sorted_type, _discrete, _spark_discrete, "p"),
    _within("mode", _sorted_type, _most_frequent, _spark_most_frequent, ""),
)


def _gathered_type(argument: Type | None) -> Type | None:
    if argument is None or not has_arrays(argument):
        return None
    return array_of(argument.bare)


def _gathered(inputs: Inputs, _: Type) -> Value:
    return tuple(value for (value,) in inputs) or None


def _spark_gathered(rows: GroupRows, _: Type) -> exp.Expression:
    def gathered(values: exp.Expression) -> exp.Expression:
        names = [exp.to_identifier("x")]
        plain = exp.Lambda(this=field("x", "a1"), expressions=names)
        empty = exp.EQ(this=spark_function("size", values.copy()), expression=number(0))
        return case(empty, exp.Null(), spark_function("transform", values, plain))

    return bound((rows.array(),), gathered)


ARRAYS: tuple[AggregateFunction, ...] = (
    AggregateFunction(
        "array_agg",
        _gathered_type,
        _gathered,
        _spark_gathered,
        "array_agg(a ORDER BY b)",
        needed=0,
        order="written",
        note="NULLs are elements too. Not of arrays.",
    ),
)
