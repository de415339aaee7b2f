"""Decimal products and quotients: their types, and how Spark computes them without losing digits.

Spark's decimals have 38 digits and its result types follow from its operands' alone, so the
operands are cast to where the result keeps the digits that count.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.functions.function import spark_binary, spark_cast, spark_function
from headrace.functions.spark import let
from headrace.types import Type, result_numeric
from headrace.types.kinds import MAXIMUM_DIGITS

LONGEST_EXACT_SCALE = 20
"""A longer scale would leave too few digits before the point, if all 38 are in use."""

# The type of Spark's own quotient of two long decimals, which expressions compute with.
LONG_QUOTIENT = result_numeric(38, 18, rounded="quotient", room=0)
# The type that a quotient is shown in. PostgreSQL gives 12 digits and more after the point for
# quotients below 10^8, so both agree after rounding to 12.
QUOTIENT = result_numeric(32, 12, rounded="quotient", room=0)


def digits_before_point(type_: Type) -> int:
    """Return the number of digits before the point of the largest value of a decimal."""
    assert type_.precision is not None and type_.scale is not None
    return type_.precision - type_.scale


def is_lossless(left: Type, right: Type) -> bool:
    """Return whether one decimal of 38 digits holds every value of both, with every digit."""
    whole = max(map(digits_before_point, (left, right)))
    return whole + max(left.scale or 0, right.scale or 0) <= MAXIMUM_DIGITS


def common_decimal(types: Sequence[Type]) -> Type | None:
    """Return the decimal with all digits after the point that its types have.

    Return None if values lack room.

    Values that columns and constants can have must fit. Sums of many rows are seldom as large as
    their types allow: one that does not fit is an error when it is computed. Quotients keep
    12 digits after the point; further ones yield to digits before it.
    """
    scale = max(type_.scale or 0 for type_ in types)
    whole = max(map(digits_before_point, types))
    rounded = next((type_.rounded for type_ in types if type_.rounded), None)
    if rounded is not None:
        scale = min(scale, max(MAXIMUM_DIGITS - whole, QUOTIENT.scale or 0))
    room = max(type_.room for type_ in types)
    if room + scale > MAXIMUM_DIGITS:
        return None
    return result_numeric(whole + scale, scale, rounded=rounded, room=room)


def product_type(left: Type, right: Type) -> Type:
    """Return a product's type: exact while the digits suffice, else rounded to the longer scale."""
    assert left.precision and right.precision
    scale = (left.scale or 0) + (right.scale or 0)
    rounded, room = left.rounded or right.rounded, left.room + right.room
    if _is_exact(left, right):
        return result_numeric(left.precision + right.precision, scale, rounded=rounded, room=room)
    longer = max(left.scale or 0, right.scale or 0)
    return result_numeric(MAXIMUM_DIGITS, longer, rounded=rounded or "product", room=room)


def _is_exact(left: Type, right: Type) -> bool:
    assert left.precision and right.precision
    fits = left.precision + right.precision <= MAXIMUM_DIGITS
    return fits or (left.scale or 0) + (right.scale or 0) <= LONGEST_EXACT_SCALE


def spark_zero(type_: Type) -> exp.Expression:
    """Return zero in the type: beside a bare 0, Spark may cut the last digit of the other side."""
    return spark_cast(exp.Literal.number(0), type_)


def spark_negated(number: exp.Expression, type_: Type) -> exp.Expression:
    """Return 0 − x: Spark's own minus sign, and abs with it, keep 34 digits."""
    return spark_binary(exp.Sub, spark_zero(type_), number.copy())


def spark_magnitude(number: exp.Expression, type_: Type) -> exp.Expression:
    """Return |x| with all digits: the larger of x and −x."""
    return spark_function("greatest", number.copy(), spark_negated(number, type_))


def is_negative(number: exp.Expression, type_: Type) -> exp.Expression:
    return exp.Paren(this=exp.LT(this=number.copy(), expression=spark_zero(type_)))


def spark_product(
    left: exp.Expression, right: exp.Expression, types: tuple[Type, Type], result: Type
) -> exp.Expression:
    """Return the product of two decimals as `result`."""
    if _is_exact(*types):
        return spark_cast(spark_binary(exp.Mul, left, right), result)
    return let((left, right), lambda a, b: _long_product(a, b, types, result))


def _long_product(
    a: exp.Expression, b: exp.Expression, types: tuple[Type, Type], result: Type
) -> exp.Expression:
    """Return the product of two decimals, computed in parts that have room.

        |a|·|b|  =  |a|·⌊|b|⌋ + ⌊|a|⌋·{|b|} + {|a|}·{|b|}     and the sign

    The first two terms are exact in the result's scale, the last is below one and rounded, so the
    sum is the product rounded once.
    """

    first, second = types
    x, y = spark_magnitude(a, first), spark_magnitude(b, second)

    def whole(magnitude: exp.Expression) -> exp.Expression:
        return spark_function("floor", magnitude.copy())

    def fraction(magnitude: exp.Expression) -> exp.Expression:
        return spark_binary(exp.Sub, magnitude.copy(), whole(magnitude))

    def term(left: exp.Expression, right: exp.Expression) -> exp.Expression:
        return spark_cast(spark_binary(exp.Mul, left, right), result)

    def digits(magnitude: exp.Expression, type_: Type) -> exp.Expression:
        return spark_cast(fraction(magnitude), result_numeric(type_.scale or 0, type_.scale or 0))

    total = term(x.copy(), whole(y))
    for addend in (term(whole(x), fraction(y)), term(digits(x, first), digits(y, second))):
        total = spark_cast(spark_binary(exp.Add, total, addend), result)
    opposite = exp.NEQ(this=is_negative(a, first), expression=is_negative(b, second))
    unit = exp.Literal.number(1)
    sign = exp.Case(ifs=[exp.If(this=opposite, true=exp.Neg(this=unit))], default=unit.copy())
    return term(total, spark_cast(sign, result_numeric(1, 0)))


def spark_quotient(
    left: exp.Expression, right: exp.Expression, types: tuple[Type, Type], result: Type
) -> exp.Expression:
    """Return the quotient of two decimals as `result`.

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
        large = exp.GTE(this=spark_magnitude(b, divisor), expression=limit)
        wide = spark_cast(b.copy(), result_numeric(MAXIMUM_DIGITS, divisor.scale or 0))
        return exp.Case(
            ifs=[exp.If(this=large, true=quotient(a.copy(), wide))],
            default=quotient(a.copy(), spark_cast(b.copy(), longest)),
        )

    return let((left, right), by_size)
