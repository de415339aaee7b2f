"""Decimals compared by parts, where no decimal of 38 digits holds the values of both sides.

Spark would bring both sides to one decimal and round what does not fit. Here x is ⌊x⌋, which has
no digits after the point, and x − ⌊x⌋, which has none before it:

    x = y    ⌊x⌋ = ⌊y⌋ ∧ x − ⌊x⌋ = y − ⌊y⌋
    x < y    ⌊x⌋ < ⌊y⌋ ∨ (⌊x⌋ = ⌊y⌋ ∧ x − ⌊x⌋ < y − ⌊y⌋)

A part is NULL where its number is. The conjuncts of an equality read one side each, so a join has
them as its keys.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.functions.function import spark_binary, spark_cast, spark_function
from headrace.functions.let import let
from headrace.types import Type, result_numeric

Expression = exp.Expression
Comparison = type[exp.Binary]

# What decides where the whole parts differ, if the comparison is no equality.
_STRICT: dict[Comparison, Comparison] = {
    exp.LT: exp.LT,
    exp.LTE: exp.LT,
    exp.GT: exp.GT,
    exp.GTE: exp.GT,
    exp.NEQ: exp.NEQ,
}


def compared_by_parts(
    operator: Comparison, left: Expression, right: Expression, types: tuple[Type, Type]
) -> Expression:
    """The comparison of two decimals of any digits."""
    scale = max(type_.scale or 0 for type_ in types)

    def compared(x: Expression, y: Expression) -> Expression:
        wholes = tuple(_whole(z, type_) for z, type_ in zip((x, y), types, strict=True))
        rests = tuple(_rest(z, type_, scale) for z, type_ in zip((x, y), types, strict=True))
        strict = _STRICT.get(operator)
        if strict is None:
            return spark_binary(
                exp.And, spark_binary(operator, *wholes), spark_binary(operator, *rests)
            )
        differ = spark_binary(strict, *wholes)
        same = spark_binary(exp.EQ, *(whole.copy() for whole in wholes))
        tie = spark_binary(exp.And, same, spark_binary(operator, *rests))
        return spark_binary(exp.Or, differ, tie)

    return let((left, right), compared)


def _whole(number: Expression, type_: Type) -> Expression:
    """The largest integer that is not above the number."""
    return spark_function("floor", number.copy()) if type_.scale else number.copy()


def _rest(number: Expression, type_: Type, scale: int) -> Expression:
    """What the number has above its whole part: at least 0, less than 1."""
    rest = spark_binary(exp.Sub, number.copy(), _whole(number, type_))
    return spark_cast(rest, result_numeric(scale, scale))
