"""GREATEST, LEAST, counts of NULL, and the value of a scalar subquery."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from headrace.algebra.scalar import Scalar, Value
from headrace.functions.comparison import comparable, order_key
from headrace.functions.function import (
    EvaluationError,
    Function,
    Rendering,
    spark_cast,
    spark_function,
)
from headrace.functions.logic import common_type
from headrace.functions.spark import number, plus
from headrace.types import INTEGER, Type


def _extreme_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return the common type of the arguments, if both engines order them alike.

    Floats are left out: -0.0 and 0.0 are equal.
    """
    types = [argument.type for argument in arguments]
    common = common_type(types) if types else None
    if common is None or any(not comparable(type_, common, order=True) for type_ in types):
        return None
    return None if common.is_float else common


def _extreme_spark(name: str) -> Rendering:
    def spark(
        arguments: Sequence[exp.Expression], _: Sequence[Type], result: Type
    ) -> exp.Expression:
        values = [spark_cast(argument, result) for argument in arguments]
        return values[0] if len(values) == 1 else spark_function(name, *values)

    return spark


def _extreme(choose: Callable[..., Value]) -> Callable[..., Value]:
    def evaluate(*values: Value) -> Value:
        present = [value for value in values if value is not None]
        return choose(present, key=order_key) if present else None

    return evaluate


def _count_spark(*, nulls: bool) -> Rendering:
    def spark(
        arguments: Sequence[exp.Expression], _: Sequence[Type], result: Type
    ) -> exp.Expression:
        test = "isnull" if nulls else "isnotnull"
        counts = [spark_cast(spark_function(test, argument), result) for argument in arguments]
        total: exp.Expression = number(0)
        for count in counts:
            total = plus(total, count)
        return spark_cast(total, result)

    return spark


CHOICES: tuple[Function, ...] = (
    Function(
        "greatest",
        _extreme_type,
        _extreme_spark("greatest"),
        _extreme(max),
        "greatest(a, b, …)",
        strict=False,
        note="NULLs do not count. Text needs collation C; not for floats.",
    ),
    Function(
        "least",
        _extreme_type,
        _extreme_spark("least"),
        _extreme(min),
        "least(a, b, …)",
        strict=False,
        note="NULLs do not count. Text needs collation C; not for floats.",
    ),
    Function(
        "num_nulls",
        lambda _: INTEGER,
        _count_spark(nulls=True),
        lambda *values: sum(value is None for value in values),
        "num_nulls(a, b, …)",
        strict=False,
    ),
    Function(
        "num_nonnulls",
        lambda _: INTEGER,
        _count_spark(nulls=False),
        lambda *values: sum(value is not None for value in values),
        "num_nonnulls(a, b, …)",
        strict=False,
    ),
)


MESSAGE = "more than one row returned by a subquery used as an expression"


def _spark(
    arguments: Sequence[exp.Expression], _types: Sequence[Type], _result: Type
) -> exp.Expression:
    rows, value = arguments
    several = exp.GT(this=rows, expression=exp.Literal.number(1))
    raised = spark_function("raise_error", exp.Literal.string(MESSAGE))
    return exp.Case(ifs=[exp.If(this=several, true=raised)], default=value)


def _evaluate(rows: Value, value: Value) -> Value:
    assert isinstance(rows, int)
    if rows > 1:
        raise EvaluationError(MESSAGE)
    return value


SUBQUERIES: tuple[Function, ...] = (
    Function(
        "only row",
        lambda arguments: arguments[1].type,
        _spark,
        _evaluate,
        "(SELECT a …)",
        strict=False,
        raises=True,
        note="More than one row is an error, as in PostgreSQL, for the rows that it is asked for.",
    ),
)
