"""BIT_AND, BIT_OR, BIT_XOR."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Value
from headrace.functions.aggregates.aggregate import AggregateFunction, Inputs
from headrace.functions.aggregates.group_rows import GroupRows
from headrace.types import Type


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
