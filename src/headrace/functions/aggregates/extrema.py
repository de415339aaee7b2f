"""MIN and MAX keep the extremum itself; so does the one value of a scalar subquery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal as OneOf

from sqlglot import exp

from headrace.algebra.scalar import Scalar, Value
from headrace.functions.aggregates.aggregate import (
    AggregateFunction,
    GroupRows,
    HiddenState,
    Inputs,
    present,
    spark_unsigned_zero,
    unsigned_zero,
    without_sign_of_zero,
)
from headrace.functions.comparison import order_key
from headrace.types import Type


def extremum_type(argument: Type | None) -> Type | None:
    """Return the argument's type without digits or length of its own.

    Text has one under collation C only.
    """
    if argument is None or argument.comparison != "ordered":
        return None
    if argument.kind in ("text", "character varying"):
        return Type("text", folds=argument.folds)
    if argument.kind == "character":
        return argument.without_length
    if argument.row.has_extremum:
        return replace(argument, declared=False)
    return None


def _states(kept: OneOf["min", "max"]) -> Callable[[Scalar], tuple[HiddenState, ...]]:
    def states(argument: Scalar) -> tuple[HiddenState, ...]:
        return (
            HiddenState("sum", present(argument)),
            HiddenState(kept, without_sign_of_zero(argument)),
        )

    return states


def _extremum(name: OneOf["min", "max"]) -> AggregateFunction:
    def evaluate(inputs: Inputs, _: Type) -> Value:
        values = [value for (value,) in inputs]
        choose = min if name == "min" else max
        return unsigned_zero(choose(values, key=order_key)) if values else None

    def spark(rows: GroupRows, _: Type) -> exp.Expression:
        return rows.call(name, spark_unsigned_zero(rows.value, rows.types[0]))

    return AggregateFunction(
        name,
        extremum_type,
        evaluate,
        spark,
        f"{name}(a)",
        _states(name),
        lambda states, _: states[1],
        repeats=False,
    )


def _any_states(argument: Scalar) -> tuple[HiddenState, ...]:
    return (HiddenState("sum", present(argument)), HiddenState("min", argument))


def _any(inputs: Inputs, _: Type) -> Value:
    return min((value for (value,) in inputs), key=order_key, default=None)


# For values that are all the same, as of a scalar subquery; queries cannot call this function.
ANY = AggregateFunction(
    "any_value",
    lambda argument: argument,
    _any,
    lambda rows, _: rows.call("min", rows.value),
    "",
    _any_states,
    lambda states, _: states[1],
    repeats=False,
)

EXTREMA: tuple[AggregateFunction, ...] = (_extremum("min"), _extremum("max"), ANY)
