"""Arithmetic with PostgreSQL's result types, rounding, overflow and division.

Decimal results have a fixed scale: sums and products keep every digit while 38 suffice; division
is computed with more digits and rounded half away from zero to the result's scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

from sqlglot import exp

from headrace.functions.function import (
    Function,
    Rendering,
    spark_binary,
    spark_cast,
    spark_function,
)
from headrace.plan.scalar import Scalar, Value
from headrace.types import DOUBLE, Type, result_numeric

INTEGERS = ("smallint", "integer", "bigint")
DIGITS_OF_INTEGERS = {"smallint": 5, "integer": 10, "bigint": 19}
RANGE_OF_INTEGERS = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}
# A product of two numerics without typmod keeps the digits of both; a longer product is rounded.
LONGEST_EXACT_SCALE = 24
WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


class EvaluationError(ArithmeticError):
    """The pure evaluator met what PostgreSQL answers with an error."""


def as_numeric(type_: Type) -> Type:
    """The decimal that holds every value of an integer type; numerics stay as they are."""
    if type_.kind == "numeric":
        return type_
    return result_numeric(DIGITS_OF_INTEGERS[type_.kind], 0)


def common_number(left: Type, right: Type) -> Type | None:
    """The type both operands of an arithmetic operator or comparison are brought to."""
    if not (left.is_number and right.is_number):
        return None
    if left.is_float or right.is_float:
        return left if left.kind == right.kind == "real" else DOUBLE
    if left.kind == "numeric" or right.kind == "numeric":
        left, right = as_numeric(left), as_numeric(right)
        assert left.precision and right.precision
        scale = max(left.scale or 0, right.scale or 0)
        whole = max(left.precision - (left.scale or 0), right.precision - (right.scale or 0))
        return result_numeric(whole + scale, scale, rounded=left.rounded or right.rounded)
    return max(left, right, key=lambda type_: INTEGERS.index(type_.kind))


def round_to(value: Decimal, scale: int) -> Decimal:
    """Rounded half away from zero, as PostgreSQL and Spark both round decimals."""
    return value.quantize(Decimal(1).scaleb(-scale), context=WIDE)


def fitted(value: Value, type_: Type) -> Value:
    """The value as the type holds it; EvaluationError where PostgreSQL would report overflow."""
    if type_.is_integer:
        limit = RANGE_OF_INTEGERS[type_.kind]
        if not -limit <= value < limit:  # type: ignore[operator]
            raise EvaluationError(f"{type_.kind} out of range")
    elif type_.kind == "numeric":
        assert type_.precision is not None and type_.scale is not None
        value = round_to(Decimal(value), type_.scale)  # type: ignore[arg-type]
        if abs(value) >= Decimal(10) ** (type_.precision - type_.scale):
            raise EvaluationError("numeric out of range")
    elif type_.is_float and math.isinf(value):  # type: ignore[arg-type]
        raise EvaluationError("value out of range: overflow")
    return value


def _sum_type(arguments: Sequence[Scalar]) -> Type | None:
    left, right = (argument.type for argument in arguments)
    common = common_number(left, right)
    if common is not None and common.kind == "numeric":
        assert common.precision is not None and common.scale is not None
        return result_numeric(common.precision + 1, common.scale, rounded=common.rounded)
    return common


def _product_type(arguments: Sequence[Scalar]) -> Type | None:
    left, right = (argument.type for argument in arguments)
    common = common_number(left, right)
    if common is None or common.kind != "numeric":
        return common
    left, right = _factors(left, right)
    assert left.precision and right.precision
    return result_numeric(
        left.precision + right.precision,
        (left.scale or 0) + (right.scale or 0),
        rounded=left.rounded or right.rounded,
    )


def _factors(left: Type, right: Type) -> tuple[Type, Type]:
    """The decimals that are multiplied: rounded first where the product would have too long a scale."""
    left, right = as_numeric(left), as_numeric(right)
    assert left.precision and right.precision
    if (left.scale or 0) + (right.scale or 0) <= LONGEST_EXACT_SCALE:
        return left, right
    if left.precision + right.precision <= 38:
        return left, right
    half = LONGEST_EXACT_SCALE // 2
    return tuple(  # type: ignore[return-value]
        factor
        if (factor.scale or 0) <= half
        else result_numeric(38, half, rounded=True)
        for factor in (left, right)
    )


# PostgreSQL gives 12 digits and more after the point for quotients below 10^8.
QUOTIENT = result_numeric(38, 12, rounded=True)


def _quotient_type(arguments: Sequence[Scalar]) -> Type | None:
    common = common_number(*(argument.type for argument in arguments))
    return QUOTIENT if common is not None and common.kind == "numeric" else common


def _remainder_type(arguments: Sequence[Scalar]) -> Type | None:
    common = common_number(*(argument.type for argument in arguments))
    return None if common is None or common.is_float else common


def _operands(
    arguments: Sequence[exp.Expression], types: Sequence[Type], result: Type
) -> list[exp.Expression]:
    if result.kind == "numeric":
        return [
            spark_cast(argument, as_numeric(type_)) if type_.is_integer else argument
            for argument, type_ in zip(arguments, types, strict=True)
        ]
    return [spark_cast(argument, result) for argument in arguments]


def _checked_float(
    result: exp.Expression, operands: Sequence[exp.Expression], *, underflow: bool
) -> exp.Expression:
    """PostgreSQL reports float overflow and underflow where Spark gives infinity and zero."""

    def infinite(expression: exp.Expression) -> exp.Expression:
        infinities = [
            spark_function("double", exp.Literal.string(text)) for text in ("Infinity", "-Infinity")
        ]
        return exp.In(this=expression.copy(), expressions=infinities)

    conditions = [exp.and_(infinite(result), *(exp.not_(infinite(o)) for o in operands))]
    if underflow:
        zero = exp.Literal.number(0)
        left, right = operands
        conditions.append(
            exp.and_(
                exp.EQ(this=result.copy(), expression=zero),
                exp.NEQ(this=left.copy(), expression=zero.copy()),
                exp.NEQ(this=right.copy(), expression=zero.copy()),
                exp.not_(infinite(right)),
            )
        )
    message = exp.Literal.string("value out of range")
    return exp.Case(
        ifs=[exp.If(this=exp.or_(*conditions), true=spark_function("raise_error", message))],
        default=result,
    )


def _arithmetic(operator: type[exp.Binary], *, underflow: bool = False) -> Rendering:
    def spark(
        arguments: Sequence[exp.Expression], types: Sequence[Type], result: Type
    ) -> exp.Expression:
        operands = _operands(arguments, types, result)
        if result.kind == "numeric" and operator is exp.Mul:
            factors = _factors(*types)
            operands = [spark_cast(o, factor) for o, factor in zip(operands, factors, strict=True)]
        value = spark_binary(operator, *operands)
        if result.is_float:
            return _checked_float(value, operands, underflow=underflow)
        return spark_cast(value, result)

    return spark


def _divide(
    arguments: Sequence[exp.Expression], types: Sequence[Type], result: Type
) -> exp.Expression:
    left, right = _operands(arguments, types, result)
    if result.is_integer:
        # `div` gives BIGINT; the cast finds the one overflow, minimum / -1.
        return spark_cast(spark_binary(exp.IntDiv, left, right), result)
    value = spark_binary(exp.Div, left, right)
    if result.is_float:
        return _checked_float(value, (left, right), underflow=True)
    return spark_cast(value, result)


def divide(left: Value, right: Value) -> Value:
    """Integer division truncates toward zero, numeric division keeps 38 and more digits."""
    if right == 0:
        raise EvaluationError("division by zero")
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    if isinstance(left, float) or isinstance(right, float):
        return float(left) / float(right)  # type: ignore[arg-type]
    return WIDE.divide(Decimal(left), Decimal(right))  # type: ignore[arg-type]


def _remainder(left: Value, right: Value) -> Value:
    if right == 0:
        raise EvaluationError("division by zero")
    if isinstance(left, int) and isinstance(right, int):
        return left - right * divide(left, right)  # type: ignore[operator]
    return WIDE.remainder(Decimal(left), Decimal(right))  # type: ignore[arg-type]


def _same(arguments: Sequence[Scalar]) -> Type | None:
    return arguments[0].type if arguments[0].type.is_number else None


def _mixed(operation: Callable[[object, object], Value]) -> Callable[..., Value]:
    """Python refuses Decimal with float; PostgreSQL brings both to double precision."""

    def evaluate(left: Value, right: Value) -> Value:
        if isinstance(left, float) or isinstance(right, float):
            left, right = float(left), float(right)  # type: ignore[arg-type]
        return operation(left, right)

    return evaluate


NUMBERS: tuple[Function, ...] = (
    Function(
        "+",
        _sum_type,
        _arithmetic(exp.Add),
        _mixed(lambda a, b: a + b),  # type: ignore[operator]
        raises=True,
    ),
    Function(
        "-",
        _sum_type,
        _arithmetic(exp.Sub),
        _mixed(lambda a, b: a - b),  # type: ignore[operator]
        raises=True,
    ),
    Function(
        "*",
        _product_type,
        _arithmetic(exp.Mul, underflow=True),
        _mixed(lambda a, b: a * b),  # type: ignore[operator]
        raises=True,
    ),
    Function("/", _quotient_type, _divide, divide, raises=True),
    Function("%", _remainder_type, _arithmetic(exp.Mod), _remainder, raises=True),
    Function(
        "negate",
        _same,
        lambda a, _, result: spark_cast(exp.Paren(this=exp.Neg(this=a[0])), result),
        lambda a: -a,
        raises=True,
    ),
    Function(
        "abs",
        _same,
        lambda a, _, result: spark_cast(spark_function("abs", a[0]), result),
        abs,
        raises=True,
    ),
)
