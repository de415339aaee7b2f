"""SUM and AVG of numbers and of intervals, as hidden sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Call, Scalar, Value
from headrace.functions.aggregates.aggregate import (
    AggregateFunction,
    GroupRows,
    HiddenState,
    Inputs,
    filled,
    or_null,
    present,
    total_type,
)
from headrace.functions.decimals import LONG_QUOTIENT, spark_quotient
from headrace.functions.function import Function, spark_cast, spark_function
from headrace.functions.intervals import (
    DAY,
    DAYS_OF_MONTH,
    INTERVAL,
    SECOND,
    checked,
    parts_of,
    spark_checked,
    spark_parts,
)
from headrace.functions.numbers import WIDE, as_numeric, fitted
from headrace.functions.spark import bound, let, long, minus, number, plus, times
from headrace.types import BIGINT, DOUBLE, Type, result_numeric

Expression = exp.Expression

PARTS = ("interval months", "interval days", "interval microseconds")
SUM, MEAN = "interval of parts", "interval of mean parts"
_DAY_SECONDS = DAY // SECOND


def interval_states(argument: Scalar) -> tuple[HiddenState, ...]:
    """Return the sums of the three parts, and the number of values."""
    parts = (Call(name, (argument,), BIGINT) for name in PARTS)
    return (
        *(HiddenState("sum", filled(part)) for part in parts),
        HiddenState("sum", present(argument)),
    )


def interval_value(function: str, states: tuple[Scalar, ...]) -> Scalar:
    """Return SUM or MEAN over the states."""
    used = states if function == MEAN else states[:-1]
    return or_null(states[-1], Call(function, used, INTERVAL), INTERVAL)


def evaluate_sum(inputs: Inputs) -> Value:
    return checked(*_totals(inputs)) if inputs else None


def evaluate_mean(inputs: Inputs) -> Value:
    return _mean(*_totals(inputs), len(inputs)) if inputs else None


def _totals(inputs: Inputs) -> tuple[int, int, int]:
    parts = [parts_of(str(text)) for (text,) in inputs]
    return sum(p.months for p in parts), sum(p.days for p in parts), sum(p.micros for p in parts)


def _mean(months: int, days: int, micros: int, count: int) -> str:
    """Return the mean as PostgreSQL divides an interval: the rest of a unit in smaller ones."""
    by = float(count)
    month, day = int(months / by), int(days / by)
    left_days = _rounded((months / by - month) * DAYS_OF_MONTH)
    seconds = _rounded((days / by - day + left_days - int(left_days)) * _DAY_SECONDS)
    more = int(seconds / _DAY_SECONDS)
    seconds -= more * _DAY_SECONDS
    time = round(micros / by + seconds * SECOND)
    return checked(month, day + more + int(left_days), time)


def _rounded(value: float) -> float:
    """Return the number with six digits after the point, as microseconds have."""
    return round(value * SECOND) / SECOND


def spark_sum(rows: GroupRows) -> Expression:
    return spark_checked(*_spark_totals(rows))


def spark_mean(rows: GroupRows) -> Expression:
    return _spark_mean((*_spark_totals(rows), rows.call("count", rows.value)))


def _spark_totals(rows: GroupRows) -> list[Expression]:
    return [rows.call("sum", part) for part in spark_parts(rows.value)]


def _spark_mean(parts: Sequence[Expression], *_: object) -> Expression:
    """Return the mean on Spark: each remainder is bound before it is used twice."""

    def mean(
        months: Expression, days: Expression, micros: Expression, count: Expression
    ) -> Expression:
        by = spark_cast(spark_function("nullif", count, number(0)), DOUBLE)

        def divided(value: Expression) -> Expression:
            return exp.Paren(
                this=exp.Div(this=spark_cast(value.copy(), DOUBLE), expression=by.copy())
            )

        # A cast to BIGINT cuts toward zero.
        month, day = long(divided(months)), long(divided(days))
        left = _spark_rounded(times(minus(divided(months), month), number(DAYS_OF_MONTH)))

        def cascaded(left_days: Expression) -> Expression:
            fraction = minus(plus(minus(divided(days), day), left_days), long(left_days.copy()))
            seconds = _spark_rounded(times(fraction, number(_DAY_SECONDS)))
            return bound((seconds, left_days), summed, "remainders")

        def summed(seconds: Expression, left_days: Expression) -> Expression:
            ratio = exp.Div(this=seconds.copy(), expression=number(_DAY_SECONDS))
            more = long(exp.Paren(this=ratio))
            rest = minus(seconds, times(more, number(_DAY_SECONDS)))
            time = plus(divided(micros), times(rest, number(SECOND)))
            whole_days = plus(plus(day.copy(), more.copy()), long(left_days.copy()))
            return spark_checked(month.copy(), whole_days, long(spark_function("rint", time)))

        return bound((left,), cascaded, "left_over")

    return let(parts, mean)


def _spark_rounded(value: Expression) -> Expression:
    micros = spark_function("rint", times(value, number(SECOND)))
    return exp.Paren(this=exp.Div(this=micros, expression=spark_cast(number(SECOND), DOUBLE)))


def _type(inputs: Type, result: Type, count: int) -> Callable[[Sequence[Scalar]], Type | None]:
    def type_of(arguments: Sequence[Scalar]) -> Type | None:
        fits = len(arguments) == count and all(a.type == inputs for a in arguments)
        return result if fits else None

    return type_of


def _part(place: int) -> Function:
    def evaluate(text: str) -> int:
        parts = parts_of(text)
        return (parts.months, parts.days, parts.micros)[place]

    def spark(arguments: Sequence[Expression], *_: object) -> Expression:
        return spark_parts(arguments[0])[place]

    return Function(PARTS[place], _type(INTERVAL, BIGINT, 1), spark, evaluate, "")


INTERVAL_PARTS: tuple[Function, ...] = (
    *map(_part, range(len(PARTS))),
    Function(
        SUM,
        _type(BIGINT, INTERVAL, 3),
        lambda parts, *_: spark_checked(*parts),
        checked,
        "",
        raises=True,
    ),
    Function(MEAN, _type(BIGINT, INTERVAL, 4), _spark_mean, _mean, "", raises=True),
)


def sum_type(argument: Type | None) -> Type | None:
    """Return PostgreSQL's type: bigint for small integers, numeric beyond, floats as they are."""
    match argument:
        case Type(kind="smallint" | "integer"):
            return BIGINT
        case Type(kind="bigint" | "numeric"):
            return total_type(as_numeric(argument))
        case Type(kind="real" | "double precision" | "interval"):
            return argument
        case _:
            return None


def average_type(argument: Type | None) -> Type | None:
    if argument == INTERVAL:
        return INTERVAL
    return quotient_type(argument)


def quotient_type(argument: Type | None) -> Type | None:
    """Return the type of a sum that is divided by a number of rows."""
    if argument is None or not argument.is_number:
        return None
    return DOUBLE if argument.is_float else LONG_QUOTIENT


def widened(argument: Scalar) -> Scalar:
    """Return the argument in a type that its sums are exact in."""
    total = sum_type(argument.type)
    assert total is not None
    if total.kind == "numeric" and argument.type.is_integer:
        return Call("cast", (argument,), as_numeric(argument.type))
    if total == BIGINT and argument.type != BIGINT:
        return Call("cast", (argument,), BIGINT)
    if argument.type.kind == "real":
        return Call("cast", (argument,), DOUBLE)
    return argument


def _states(argument: Scalar) -> tuple[HiddenState, ...]:
    if argument.type == INTERVAL:
        return interval_states(argument)
    return (HiddenState("sum", filled(widened(argument))), HiddenState("sum", present(argument)))


def _sum(states: tuple[Scalar, ...], type_: Type) -> Scalar:
    if type_ == INTERVAL:
        return interval_value(SUM, states)
    total, count = states
    if total.type != type_:
        total = Call("cast", (total,), type_)
    return or_null(count, total, type_)


def _average(states: tuple[Scalar, ...], type_: Type) -> Scalar:
    if type_ == INTERVAL:
        return interval_value(MEAN, states)
    total, count = states
    if total.type.is_integer:
        total = Call("cast", (total,), as_numeric(total.type))
    divisor = Call("cast", (count,), DOUBLE if type_.is_float else as_numeric(BIGINT))
    return or_null(count, Call("/", (total, divisor), type_), type_)


def _evaluate_sum(inputs: Inputs, type_: Type) -> Value:
    if type_ == INTERVAL:
        return evaluate_sum(inputs)
    return fitted(_total(inputs), type_) if inputs else None


def _evaluate_average(inputs: Inputs, type_: Type) -> Value:
    if type_ == INTERVAL:
        return evaluate_mean(inputs)
    if not inputs:
        return None
    total = _total(inputs)
    if type_.is_float:
        return float(total / len(inputs))
    return fitted(WIDE.divide(Decimal(total), Decimal(len(inputs))), type_)


def _total(inputs: Inputs) -> Any:
    values: list[Any] = [value for (value,) in inputs]
    return sum(values[1:], start=values[0])


def spark_total(rows: GroupRows, result: Type) -> exp.Expression:
    """Return the sum in a type wide enough for PostgreSQL's sum of it."""
    if result == INTERVAL:
        return spark_sum(rows)
    (type_,) = rows.types
    value = rows.value
    if result.is_float:
        value = spark_cast(value, DOUBLE)
    elif result.kind == "numeric" and type_.is_integer:
        value = spark_cast(value, as_numeric(type_))
    return rows.call("sum", value)


def spark_average(rows: GroupRows, result: Type) -> exp.Expression:
    """Return the average by its definition: Spark's own function rounds to fewer digits."""
    if result == INTERVAL:
        return spark_mean(rows)
    total, present_ = spark_total(rows, result), rows.call("count", rows.value)
    divisor = exp.Case(
        ifs=[exp.If(this=exp.NEQ(this=present_, expression=exp.Literal.number(0)), true=present_)]
    )
    if result.is_float:
        return exp.Paren(this=exp.Div(this=total, expression=spark_cast(divisor, DOUBLE)))
    types = (result_numeric(38, as_numeric(rows.types[0]).scale or 0), as_numeric(BIGINT))
    return spark_quotient(total, spark_cast(divisor, types[1]), types, result)


SUMS: tuple[AggregateFunction, ...] = (
    AggregateFunction("sum", sum_type, _evaluate_sum, spark_total, "sum(a)", _states, _sum),
    AggregateFunction(
        "avg",
        average_type,
        _evaluate_average,
        spark_average,
        "avg(a)",
        _states,
        _average,
        quotient=True,
    ),
)
