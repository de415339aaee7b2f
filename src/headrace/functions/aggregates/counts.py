"""COUNT, and aggregates of truth values and of bits: BOOL_AND, BOOL_OR, BIT_AND, BIT_OR."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Call, Literal, Scalar, Value
from headrace.functions.aggregates.aggregate import (
    AggregateFunction,
    GroupRows,
    HiddenState,
    Inputs,
    one_if,
    or_null,
    present,
)
from headrace.functions.function import spark_function
from headrace.types import BIGINT, BOOLEAN, Type


def _count_states(argument: Scalar | None) -> tuple[HiddenState, ...]:
    term = Literal(1, BIGINT) if argument is None else present(argument)
    return (HiddenState("sum", term),)


def _spark_count(rows: GroupRows, _: Type) -> exp.Expression:
    return rows.call("count", rows.value) if rows.arguments else spark_function("count", exp.Star())


def _boolean(argument: Type | None) -> Type | None:
    return BOOLEAN if argument == BOOLEAN else None


def _boolean_aggregate(name: str) -> AggregateFunction:
    """Return an aggregate: whether every value is true (none is false), or some value is."""
    all_ = name != "bool_or"

    def states(argument: Scalar) -> tuple[HiddenState, ...]:
        counted = Call("not", (argument,), BOOLEAN) if all_ else argument
        return (HiddenState("sum", one_if(counted)), HiddenState("sum", present(argument)))

    def value(columns: tuple[Scalar, ...], type_: Type) -> Scalar:
        counted, values = columns
        test = Call("=" if all_ else "<>", (counted, Literal(0, BIGINT)), BOOLEAN)
        return or_null(values, test, type_)

    def evaluate(inputs: Inputs, _: Type) -> Value:
        if not inputs:
            return None
        return (all if all_ else any)(value is True for (value,) in inputs)

    def spark(rows: GroupRows, _: Type) -> exp.Expression:
        return rows.call("bool_and" if all_ else "bool_or", rows.value)

    syntax = f"{name}(a)"
    return AggregateFunction(name, _boolean, evaluate, spark, syntax, states, value, repeats=False)


COUNTS: tuple[AggregateFunction, ...] = (
    AggregateFunction(
        "count",
        lambda _: BIGINT,
        lambda inputs, _: len(inputs),
        _spark_count,
        "count(*), count(a)",
        _count_states,
        lambda states, _: states[0],
    ),
    _boolean_aggregate("bool_and"),
    _boolean_aggregate("bool_or"),
    _boolean_aggregate("every"),
)


def _integer(argument: Type | None) -> Type | None:
    return argument if argument is not None and argument.is_integer else None


def _of_bits(name: str, combine: Callable[[Any, Any], Any]) -> AggregateFunction:
    def evaluate(inputs: Inputs, _: Type) -> Value:
        value: Value = reduce(combine, (value for (value,) in inputs)) if inputs else None
        return value

    def spark(rows: GroupRows, _: Type) -> exp.Expression:
        return rows.call(name, rows.value)

    repeats = name == "bit_xor"
    return AggregateFunction(name, _integer, evaluate, spark, f"{name}(a)", repeats=repeats)


BITS: tuple[AggregateFunction, ...] = (
    _of_bits("bit_and", operator.and_),
    _of_bits("bit_or", operator.or_),
    _of_bits("bit_xor", operator.xor),
)
