"""SUM and AVG: hidden sums, exact but for floats, whose groups are recomputed when touched."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Call, Scalar, Value
from headrace.functions.aggregates.aggregate import AggregateFunction, HiddenState, Inputs
from headrace.functions.aggregates.group_rows import GroupRows
from headrace.functions.aggregates.intervals import (
    MEAN,
    SUM,
    evaluate_mean,
    evaluate_sum,
    interval_states,
    interval_value,
    spark_mean,
    spark_sum,
)
from headrace.functions.aggregates.terms import filled, or_null, present, total_type
from headrace.functions.decimals import LONG_QUOTIENT, spark_quotient
from headrace.functions.function import spark_cast
from headrace.functions.intervals import INTERVAL
from headrace.functions.numbers import WIDE, as_numeric, fitted
from headrace.types import BIGINT, DOUBLE, Type, result_numeric


def sum_type(argument: Type | None) -> Type | None:
    """PostgreSQL's result types: bigint for small integers, numeric beyond, floats as they are."""
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
    """The type of what is divided by a number of rows."""
    if argument is None or not argument.is_number:
        return None
    return DOUBLE if argument.is_float else LONG_QUOTIENT


def widened(argument: Scalar) -> Scalar:
    """The argument in a type that its sums are exact in."""
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
    """The sum in a type wide enough for PostgreSQL's sum of it."""
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
    """As its definition: Spark's own rounds to fewer digits."""
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
