"""Variances and standard deviations, and the square root of a numeric.

Integers up to 32 bits and numerics of up to 15 digits keep Σx and Σx², which 38 digits hold for
10⁸ of the largest rows. With n values and any q near their mean, r = Σx − qn, the sum of squares
about the mean is a − r²/n with a = Σx² − q(Σx + r), and no larger than Σx²; one division gives
(an − r²) / n(n − 1), so a variance with finitely many digits is exact. Variances of other types are
computed from all values of a group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Call, Literal, Scalar, Value
from headrace.functions.aggregates.aggregate import (
    AggregateFunction,
    GroupRows,
    HiddenState,
    Inputs,
    field,
    filled,
    folded,
    or_null,
    present,
)
from headrace.functions.aggregates.regression import mean as float_mean
from headrace.functions.aggregates.sums import quotient_type, spark_average
from headrace.functions.decimals import LONG_QUOTIENT, product_type, spark_product, spark_quotient
from headrace.functions.function import (
    EvaluationError,
    Function,
    spark_binary,
    spark_cast,
    spark_function,
)
from headrace.functions.numbers import WIDE, as_numeric, fitted
from headrace.functions.spark import bound, case, fails, let, long, minus, number, plus, times
from headrace.types import BIGINT, DOUBLE, Type, result_numeric

_HALF = result_numeric(1, 1)
ROOT = "square root"


def spark_root(value: exp.Expression) -> exp.Expression:
    """Return the square root: Newton's step from the root of the double squares its error away."""

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


def _root(value: Decimal) -> Decimal:
    return WIDE.sqrt(value)


ROOTS: tuple[Function, ...] = (
    Function(
        ROOT,
        _type,
        lambda a, *_: spark_root(a[0]),
        _root,
        "",
        raises=True,
    ),
)


MOST_DIGITS = 15
"""Of a number whose squares add up within 38 digits."""


def _states(argument: Scalar) -> tuple[HiddenState, ...] | None:
    if argument.type.is_float:
        return None
    type_ = as_numeric(argument.type)
    assert type_.precision is not None
    if type_.precision > MOST_DIGITS:
        return None
    value: Scalar = argument if argument.type == type_ else Call("cast", (argument,), type_)
    square = Call("*", (value, value), product_type(type_, type_))
    return tuple(
        HiddenState("sum", term) for term in (filled(value), filled(square), present(argument))
    )


def _variance(states: tuple[Scalar, ...], fewer: int) -> Scalar:
    """Return Σ(x − mean)² / (n − fewer)."""
    total, squares, count = states
    assert total.type.scale is not None
    single, double = result_numeric(38, total.type.scale), result_numeric(38, 2 * total.type.scale)
    n: Scalar = Call("cast", (count,), as_numeric(BIGINT))
    near = Call("cast", (Call("/", (total, n), LONG_QUOTIENT),), single)
    rest = Call("-", (total, Call("*", (near, n), single)), single)
    about = Call("*", (near, Call("+", (total, rest), single)), double)
    less: Scalar = Literal(Decimal(fewer), result_numeric(1, 0))
    divisor = Call("*", (n, Call("-", (n, less), as_numeric(BIGINT))), result_numeric(38, 0))
    whole = Call("*", (Call("-", (squares, about), double), n), double)
    dividend = Call("-", (whole, Call("*", (rest, rest), double)), double)
    return Call("/", (dividend, divisor), LONG_QUOTIENT)


def _about_the_mean(rows: GroupRows, fewer: int) -> exp.Expression:
    """Return the variance from the values themselves."""
    (type_,) = rows.types
    work = result_numeric(38, max(as_numeric(type_).scale or 0, LONG_QUOTIENT.scale or 0))

    def variance(values: exp.Expression, mean: exp.Expression) -> exp.Expression:
        away = spark_cast(minus(spark_cast(field("x", "a1"), work), mean), work)
        square = spark_product(away, away.copy(), (work, work), work)
        total = exp.to_identifier("total")
        step = spark_cast(spark_binary(exp.Add, exp.Column(this=total), square), work)
        squares = folded(values.copy(), spark_cast(number(0), work), step)
        count = long(spark_function("size", values.copy()))
        divisor = spark_cast(minus(count, number(fewer)), as_numeric(BIGINT))
        quotient = spark_quotient(squares, divisor, (work, as_numeric(BIGINT)), LONG_QUOTIENT)
        few = exp.LTE(this=count.copy(), expression=number(fewer))
        return case(few, spark_cast(exp.Null(), LONG_QUOTIENT), quotient)

    mean = spark_cast(spark_average(rows, LONG_QUOTIENT), work)
    return bound((rows.array(), mean), variance)


def _of_floats(rows: GroupRows, fewer: int) -> exp.Expression:
    """Return the variance in double precision; Spark's own functions lose the largest numbers."""

    def of_values(values: exp.Expression) -> exp.Expression:
        few = exp.LTE(this=spark_function("size", values.copy()), expression=number(fewer))
        result = bound((values.copy(), float_mean(values, "a1")), variance)
        return case(few, spark_cast(exp.Null(), DOUBLE), result)

    def variance(values: exp.Expression, mean: exp.Expression) -> exp.Expression:
        away = minus(spark_cast(field("x", "a1"), DOUBLE), mean)
        step = plus(exp.Column(this=exp.to_identifier("total")), times(away, away.copy()))
        squares = folded(values.copy(), spark_cast(number(0), DOUBLE), step)
        divisor = spark_cast(minus(spark_function("size", values.copy()), number(fewer)), DOUBLE)
        return bound((exp.Div(this=squares, expression=divisor),), checked)

    def checked(found: exp.Expression) -> exp.Expression:
        infinity = spark_function("double", exp.Literal.string("Infinity"))
        overflow = exp.EQ(this=found.copy(), expression=infinity)
        return case(overflow, fails("value out of range: overflow"), found)

    return bound((rows.array(),), of_values)


def _evaluate(inputs: Inputs, fewer: int, root: bool, type_: Type) -> Value:
    count = len(inputs)
    if count <= fewer:
        return None
    values: list[Any] = [value for (value,) in inputs]
    if type_.is_float:
        if not all(map(math.isfinite, values)):
            return math.nan
        mean = sum(values) / count
        about_mean = sum((value - mean) * (value - mean) for value in values) / (count - fewer)
        if math.isinf(about_mean):
            raise EvaluationError("value out of range: overflow")
        return math.sqrt(about_mean) if root else about_mean
    exact = [Fraction(value) for value in values]
    center = sum(exact, Fraction(0)) / count
    ratio = sum(((value - center) ** 2 for value in exact), Fraction(0)) / (count - fewer)
    variance = WIDE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    rounded = fitted(variance, type_)
    assert isinstance(rounded, Decimal)
    return fitted(WIDE.sqrt(rounded), type_) if root else rounded


def _deviation(name: str, spark_name: str) -> AggregateFunction:
    fewer = 0 if spark_name.endswith("_pop") else 1
    root = spark_name.startswith("stddev")

    def value(states: tuple[Scalar, ...], type_: Type) -> Scalar:
        result = _variance(states, fewer)
        if root:
            result = Call(ROOT, (result,), LONG_QUOTIENT)
        return or_null(states[-1], result, type_, below=fewer + 1)

    def spark(rows: GroupRows, type_: Type) -> exp.Expression:
        if type_.is_float:
            float_variance = _of_floats(rows, fewer)
            return spark_function("sqrt", float_variance) if root else float_variance
        variance = _about_the_mean(rows, fewer)
        return spark_root(variance) if root else variance

    return AggregateFunction(
        name,
        quotient_type,
        lambda inputs, type_: _evaluate(inputs, fewer, root, type_),
        spark,
        f"{name}(a)",
        _states,
        value,
        quotient=True,
    )


DEVIATIONS: tuple[AggregateFunction, ...] = (
    _deviation("var_pop", "var_pop"),
    _deviation("var_samp", "var_samp"),
    _deviation("variance", "var_samp"),
    _deviation("stddev_pop", "stddev_pop"),
    _deviation("stddev_samp", "stddev_samp"),
    _deviation("stddev", "stddev_samp"),
)
