"""The record of a function in the table, and the error of its evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from headrace.algebra.scalar import Scalar, Value
from headrace.types import Type


class EvaluationError(ArithmeticError):
    """The pure evaluator met a case that PostgreSQL answers with an error."""


Typing = Callable[[Sequence[Scalar]], Type | None]
Rendering = Callable[[Sequence[exp.Expression], Sequence[Type], Type], exp.Expression]


@dataclass(frozen=True)
class Function:
    """A PostgreSQL function or operator with its exact counterpart on Spark.

    `type_of` gives the result's type, or None if the arguments are not among those that both
    engines treat alike. `spark` renders it; `evaluate` computes it on Python values for the pure
    evaluator (strict functions never see a None). `raises` says that it can fail on some input:
    then it must not be evaluated on rows that only exist in a log and not in the bag; `safe` says
    of which arguments it cannot. `syntax` is how a query writes it, `note` what a reader of the
    documentation should know.
    """

    name: str
    type_of: Typing
    spark: Rendering
    evaluate: Callable[..., Value]
    syntax: str
    strict: bool = True
    raises: bool = False
    note: str = ""
    safe: Callable[[Sequence[Scalar]], bool] = lambda _: False


def spark_cast(expression: exp.Expression, type_: Type) -> exp.Expression:
    """Return a CAST to the stored form of a type."""
    return exp.Cast(this=expression, to=_data_type(type_.spark).copy())


@lru_cache(maxsize=256)
def _data_type(name: str) -> exp.DataType:
    """Return the parsed type; cached, as a long expression has thousands of casts."""
    return exp.DataType.build(name, dialect="spark")


def spark_function(name: str, *arguments: exp.Expression) -> exp.Expression:
    """Return a call by Spark's own name, taken as it is."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def spark_binary(
    operator: type[exp.Binary], left: exp.Expression, right: exp.Expression
) -> exp.Expression:
    """Return an infix operator in parentheses, so that no precedence is ever left to chance."""
    return exp.Paren(this=operator(this=left, expression=right))
