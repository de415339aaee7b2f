"""ARRAY_AGG: the values of a group in an order, NULLs among them."""

from __future__ import annotations

from sqlglot import exp

from headrace.algebra.scalar import Value
from headrace.functions.aggregates.aggregate import AggregateFunction, Inputs
from headrace.functions.aggregates.group_rows import GroupRows, field
from headrace.functions.function import spark_function
from headrace.functions.let import bound
from headrace.functions.spark import case, number
from headrace.types import Type, array_of, has_arrays


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
