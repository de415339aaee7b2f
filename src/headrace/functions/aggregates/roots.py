"""The square root of a numeric, to the digits that a quotient is computed with."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp

from headrace.algebra.scalar import Scalar
from headrace.functions.decimals import LONG_QUOTIENT, spark_quotient
from headrace.functions.function import Function, spark_binary, spark_cast, spark_function
from headrace.functions.let import let
from headrace.functions.numbers import WIDE
from headrace.functions.spark import case, fails, number
from headrace.types import DOUBLE, Type, result_numeric

_HALF = result_numeric(1, 1)
ROOT = "square root"


def spark_root(value: exp.Expression) -> exp.Expression:
    """Newton's step from the root of the double: its error is squared, and so below the digits."""

    def root(v: exp.Expression) -> exp.Expression:
        near = spark_cast(spark_function("sqrt", spark_cast(v.copy(), DOUBLE)), LONG_QUOTIENT)
        types = LONG_QUOTIENT, LONG_QUOTIENT
        # The least root that is not zero is above the least number of these digits.
        twice = spark_binary(
            exp.Add, near, spark_quotient(v.copy(), near.copy(), types, LONG_QUOTIENT)
        )
        half = spark_cast(exp.Literal.string("0.5"), _HALF)
        stepped = spark_cast(
            spark_binary(exp.Mul, spark_cast(twice, result_numeric(37, 18)), half), LONG_QUOTIENT
        )
        zero = spark_cast(number(0), LONG_QUOTIENT)
        negative = exp.LT(this=v.copy(), expression=number(0))
        return case(
            exp.EQ(this=v.copy(), expression=number(0)),
            zero,
            negative,
            fails("cannot take square root of a negative number"),
            stepped,
        )

    return let((spark_cast(value, LONG_QUOTIENT),), root)


def _type(arguments: Sequence[Scalar]) -> Type | None:
    (argument,) = arguments
    return LONG_QUOTIENT if argument.type.kind == "numeric" else None


def _evaluate(value: Decimal) -> Decimal:
    return WIDE.sqrt(value)


ROOTS: tuple[Function, ...] = (
    Function(
        ROOT,
        _type,
        lambda a, *_: spark_root(a[0]),
        _evaluate,
        "",
        raises=True,
    ),
)
