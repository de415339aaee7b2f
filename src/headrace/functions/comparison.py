"""Comparisons: both sides are of one kind; text compares by its bytes, as under collation C.

NaN equals NaN and is larger than every number, in PostgreSQL as on Spark.

Decimals are compared by parts where no decimal of 38 digits holds the values of both sides. Spark
would bring both sides to one decimal and round the digits that do not fit. Here x is ⌊x⌋, which has
no digits after the point, and x − ⌊x⌋, which has none before it:

    x = y    ⌊x⌋ = ⌊y⌋ ∧ x − ⌊x⌋ = y − ⌊y⌋
    x < y    ⌊x⌋ < ⌊y⌋ ∨ (⌊x⌋ = ⌊y⌋ ∧ x − ⌊x⌋ < y − ⌊y⌋)

A part is NULL where its number is. The conjuncts of an equality read one side each, so a join has
them as its keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Scalar, Value
from headrace.functions.decimals import is_lossless
from headrace.functions.function import (
    Function,
    Rendering,
    spark_binary,
    spark_cast,
    spark_function,
)
from headrace.functions.numbers import as_numeric, common_number
from headrace.functions.spark import let
from headrace.types import BOOLEAN, Type, result_numeric

Expression = exp.Expression
Comparison = type[exp.Binary]

# The comparison that decides where the whole parts differ, unless it is an equality.
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
    """Return the comparison of two decimals of any digits."""
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
    """Return the largest integer that is not above the number."""
    return spark_function("floor", number.copy()) if type_.scale else number.copy()


def _rest(number: Expression, type_: Type, scale: int) -> Expression:
    """Return the number without its whole part: at least 0, less than 1."""
    rest = spark_binary(exp.Sub, number.copy(), _whole(number, type_))
    return spark_cast(rest, result_numeric(scale, scale))


def comparable(left: Type, right: Type, *, order: bool) -> bool:
    """Return whether both engines agree on comparing the two types.

    `order` asks for < as well as =.
    """
    accepted = ("ordered",) if order else ("ordered", "equality")
    if left.comparison not in accepted or right.comparison not in accepted:
        return False
    if left.is_number and right.is_number:
        return True
    if left.is_text and right.is_text:
        return True
    if left.element is not None and right.element is not None:
        # PostgreSQL compares arrays of one type alone.
        same = left.element.kind == right.element.kind
        if same and left.element.kind == "numeric":
            return is_lossless(left.element, right.element)
        return same and comparable(left.element, right.element, order=False)
    return left.kind == right.kind and left.enum == right.enum


def _type_of(order: bool) -> Callable[[Sequence[Scalar]], Type | None]:
    def type_of(arguments: Sequence[Scalar]) -> Type | None:
        left, right = arguments
        return BOOLEAN if comparable(left.type, right.type, order=order) else None

    return type_of


def _spark(operator: type[exp.Binary]) -> Rendering:
    def spark(
        arguments: Sequence[exp.Expression], types: Sequence[Type], _: Type
    ) -> exp.Expression:
        left, right = arguments
        common = common_number(*types)
        if common is None:
            return spark_binary(operator, left, right)
        if common.kind != "numeric":
            return spark_binary(operator, spark_cast(left, common), spark_cast(right, common))
        # For Spark a BIGINT has 20 digits, one more than its values.
        left, right = (
            spark_cast(argument, as_numeric(type_)) if type_.is_integer else argument
            for argument, type_ in zip((left, right), types, strict=True)
        )
        first, second = map(as_numeric, types)
        if is_lossless(first, second):
            return spark_binary(operator, left, right)
        return compared_by_parts(operator, left, right, (first, second))

    return spark


def order_key(value: Value) -> Any:
    """Return a Python key that sorts values of one type as PostgreSQL does under collation C."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, tuple):
        # NULL elements come last.
        return tuple((item is None, order_key(item)) for item in value)
    return value


def _evaluate(test: Callable[[Any, Any], bool]) -> Callable[[Value, Value], Value]:
    def evaluate(left: Value, right: Value) -> Value:
        if isinstance(left, float) or isinstance(right, float):
            left, right = float(left), float(right)  # type: ignore[arg-type]
        elif isinstance(left, Decimal) or isinstance(right, Decimal):
            left, right = Decimal(left), Decimal(right)  # type: ignore[arg-type]
        return test(order_key(left), order_key(right))

    return evaluate


def _null_safe(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return left is right
    return _evaluate(lambda a, b: a == b)(left, right)


COMPARISONS: tuple[Function, ...] = (
    Function("=", _type_of(False), _spark(exp.EQ), _evaluate(lambda a, b: a == b), "a = b"),
    Function("<>", _type_of(False), _spark(exp.NEQ), _evaluate(lambda a, b: a != b), "a <> b"),
    Function(
        "<",
        _type_of(True),
        _spark(exp.LT),
        _evaluate(lambda a, b: a < b),
        "a < b",
        note="Text needs collation C.",
    ),
    Function(
        "<=",
        _type_of(True),
        _spark(exp.LTE),
        _evaluate(lambda a, b: a <= b),
        "a <= b",
        note="Text needs collation C.",
    ),
    Function(
        ">",
        _type_of(True),
        _spark(exp.GT),
        _evaluate(lambda a, b: a > b),
        "a > b",
        note="Text needs collation C.",
    ),
    Function(
        ">=",
        _type_of(True),
        _spark(exp.GTE),
        _evaluate(lambda a, b: a >= b),
        "a >= b",
        note="Text needs collation C.",
    ),
    Function(
        "is not distinct from",
        _type_of(False),
        _spark(exp.NullSafeEQ),
        _null_safe,
        "a IS NOT DISTINCT FROM b, a IS DISTINCT FROM b, a IS [NOT] TRUE, a IS [NOT] FALSE",
        strict=False,
    ),
)
