"""The value of a scalar subquery, once its rows are counted."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.algebra.scalar import Value
from headrace.functions.errors import EvaluationError
from headrace.functions.function import Function, spark_function
from headrace.types import Type

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
