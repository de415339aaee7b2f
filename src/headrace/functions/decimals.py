"""Decimal products and quotients: their types, and how Spark computes them without losing digits.

Spark's decimals have 38 digits and its result types follow from its operands' alone, so the
operands are cast to where the result keeps the digits that count.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.functions.function import spark_binary, spark_cast, spark_function
from headrace.functions.let import let
from headrace.types import Type, result_numeric
from headrace.types.kinds import MAXIMUM_DIGITS

LONGEST_EXACT_SCALE = 20
"""A longer scale would leave too few digits before the point, if all 38 are in use."""

# Spark's own quotient of two long decimals: what an expression goes on computing with.
LONG_QUOTIENT = result_numeric(38, 18, rounded=True)
# What is shown of it. PostgreSQL gives 12 digits and more after the point for quotients below
# 10^8, so both agree after rounding to 12.
QUOTIENT = result_numeric(32, 12, rounded=True)


def product_type(left: Type, right: Type) -> Type:
    """Exact while the digits suffice, else rounded to the longer of both scales."""
    assert left.precision and right.precision
    scale = (left.scale or 0) + (right.scale or 0)
    rounded = left.rounded or right.rounded
    if _is_exact(left, right):
        return result_numeric(left.precision + right.precision, scale, rounded=rounded)
    return result_numeric(MAXIMUM_DIGITS, max(left.scale or 0, right.scale or 0), rounded=True)


def _is_exact(left: Type, right: Type) -> bool:
    assert left.precision and right.precision
    fits = left.precision + right.precision <= MAXIMUM_DIGITS
    return fits or (left.scale or 0) + (right.scale or 0) <= LONGEST_EXACT_SCALE


def spark_product(
    left: exp.Expression, right: exp.Expression, types: tuple[Type, Type], result: Type
) -> exp.Expression:
    """The product of two decimals as `result`."""
    if _is_exact(*types):
        return spark_cast(spark_binary(exp.Mul, left, right), result)
    return let((left, right), lambda a, b: _long_product(a, b, types, result))


def _long_product(
    a: exp.Expression, b: exp.Expression, types: tuple[Type, Type], result: Type
) -> exp.Expression:
    """|a|·|b| = |a|·⌊|b|⌋ + ⌊|a|⌋·{|b|} + {|a|}·{|b|}, and the sign.

    The first two terms are exact in the result's scale, the last is below one and rounded, so the
    sum is the product rounded once.
    """

    def whole(x: exp.Expression) -> exp.Expression:
        return spark_function("floor", spark_function("abs", x.copy()))

    def fraction(x: exp.Expression) -> exp.Expression:
        return spark_binary(exp.Sub, spark_function("abs", x.copy()), whole(x))

    def term(x: exp.Expression, y: exp.Expression) -> exp.Expression:
        return spark_cast(spark_binary(exp.Mul, x, y), result)

    def digits(x: exp.Expression, type_: Type) -> exp.Expression:
        return spark_cast(fraction(x), result_numeric(type_.scale or 0, type_.scale or 0))

    first, second = types
    total = term(spark_function("abs", a.copy()), whole(b))
    for other in (term(whole(a), fraction(b)), term(digits(a, first), digits(b, second))):
        total = spark_cast(spark_binary(exp.Add, total, other), result)
    negative = exp.NEQ(this=_is_negative(a), expression=_is_negative(b))
    turned = spark_cast(exp.Neg(this=exp.Paren(this=total.copy())), result)
    return exp.Case(ifs=[exp.If(this=negative, true=turned)], default=total)


def _is_negative(x: exp.Expression) -> exp.Expression:
    return exp.Paren(this=exp.LT(this=x.copy(), expression=exp.Literal.number(0)))


def spark_quotient(
    left: exp.Expression, right: exp.Expression, types: tuple[Type, Type], result: Type
) -> exp.Expression:
    """The quotient of two decimals as `result`.

    Spark gives DECIMAL(38,s1) / DECIMAL(38,s2) 18 digits after the point and 20 before it if
    s1 ≤ s2, and fewer before it otherwise; so the divisor gets the dividend's scale. A divisor
    too large for that makes a quotient below one, for which any digits before the point suffice.
    """
    dividend, divisor = types
    assert divisor.precision is not None
    scale = max(dividend.scale or 0, divisor.scale or 0)
    longest = result_numeric(MAXIMUM_DIGITS, scale)
    left = spark_cast(left, result_numeric(MAXIMUM_DIGITS, dividend.scale or 0))

    def quotient(a: exp.Expression, b: exp.Expression) -> exp.Expression:
        return spark_cast(spark_binary(exp.Div, a, b), result)

    if divisor.precision - (divisor.scale or 0) <= MAXIMUM_DIGITS - scale:
        return quotient(left, spark_cast(right, longest))

    def by_size(a: exp.Expression, b: exp.Expression) -> exp.Expression:
        limit = spark_cast(
            exp.Literal.string("1" + "0" * (MAXIMUM_DIGITS - scale)),
            result_numeric(MAXIMUM_DIGITS, 0),
        )
        large = exp.GTE(this=spark_function("abs", b.copy()), expression=limit)
        wide = spark_cast(b.copy(), result_numeric(MAXIMUM_DIGITS, divisor.scale or 0))
        return exp.Case(
            ifs=[exp.If(this=large, true=quotient(a.copy(), wide))],
            default=quotient(a.copy(), spark_cast(b.copy(), longest)),
        )

    return let((left, right), by_size)
