"""Rounding of numerics and floats, signs, square roots, and the bits of integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions.decimals import spark_zero
from headrace.functions.function import (
    EvaluationError,
    Function,
    Rendering,
    Typing,
    spark_cast,
    spark_function,
)
from headrace.functions.numbers import WIDE, common_number
from headrace.functions.spark import case, let, minus, number, unless
from headrace.types import DOUBLE, Type, result_numeric
from headrace.types.kinds import MAXIMUM_DIGITS

Expression = exp.Expression


def _below_zero(x: Expression, type_: Type = DOUBLE) -> Expression:
    return exp.LT(this=x.copy(), expression=spark_zero(type_))


def _to_scale(arguments: Sequence[Scalar]) -> Type | None:
    """Return the type with a constant number of digits; 9.9 needs one more before the point."""
    value, digits = arguments
    if value.type.kind != "numeric" or not isinstance(digits, Literal):
        return None
    scale = digits.value
    if not isinstance(scale, int) or not -MAXIMUM_DIGITS <= scale <= MAXIMUM_DIGITS:
        return None
    assert value.type.precision is not None and value.type.scale is not None
    whole = value.type.precision - value.type.scale + 1
    places = max(scale, 0)
    if whole + places > MAXIMUM_DIGITS and places > value.type.scale:
        return None
    return result_numeric(whole + places, places, rounded=value.type.rounded)


def _has_place(arguments: Sequence[Scalar]) -> bool:
    """Return whether the digit that rounding may add has a place, so that it cannot overflow."""
    type_ = arguments[0].type
    if type_.kind != "numeric" or type_.precision is None or type_.scale is None:
        return True
    digits = arguments[1].value if len(arguments) == 2 and isinstance(arguments[1], Literal) else 0
    places = max(digits, 0) if isinstance(digits, int) else MAXIMUM_DIGITS
    return type_.precision - type_.scale + 1 + places <= MAXIMUM_DIGITS


def _digits(expression: Expression) -> Expression:
    """Return the number of digits as a plain constant, which Spark's rounding requires."""
    text = expression.this.name if isinstance(expression, exp.Cast) else expression.name
    return number(int(text))


def _round_spark(arguments: Sequence[Expression], _: object, result: Type) -> Expression:
    value, digits = arguments
    return spark_cast(spark_function("round", value, _digits(digits)), result)


def _trunc_spark(
    arguments: Sequence[Expression], types: Sequence[Type], result: Type
) -> Expression:
    def toward_zero(x: Expression, digits: Expression) -> Expression:
        places = _digits(digits)
        up, down = (spark_function(f, x.copy(), places.copy()) for f in ("ceil", "floor"))
        below = _below_zero(x, types[0])
        return case(below, spark_cast(up, result), spark_cast(down, result))

    value, digits = arguments
    return let((value,), lambda x: toward_zero(x, digits))


def _rounded(rounding: str) -> Callable[[Decimal, int], Decimal]:
    def evaluate(value: Decimal, digits: int) -> Decimal:
        return value.quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=WIDE)

    return evaluate


def _whole(arguments: Sequence[Scalar]) -> Type | None:
    (value,) = arguments
    if value.type.kind == "numeric":
        assert value.type.precision is not None and value.type.scale is not None
        whole = min(value.type.precision - value.type.scale + 1, MAXIMUM_DIGITS)
        return result_numeric(whole, 0, rounded=value.type.rounded)
    return DOUBLE if value.type == DOUBLE else None


def _float_floor(x: Expression) -> Expression:
    nearest = spark_function("rint", x.copy())
    above = exp.GT(this=nearest, expression=x.copy())
    return case(above, minus(nearest.copy(), spark_cast(number(1), DOUBLE)), nearest.copy())


def _float_ceil(x: Expression) -> Expression:
    negated = exp.Paren(this=exp.Neg(this=exp.Paren(this=x.copy())))
    return exp.Paren(this=exp.Neg(this=_float_floor(negated)))


def _float_trunc(x: Expression) -> Expression:
    return case(_below_zero(x), _float_ceil(x), _float_floor(x))


def _whole_spark(name: str, of_float: Callable[[Expression], Expression]) -> Rendering:
    """Return the rendering of floor or ceil.

    Spark's own floor and ceil of a DOUBLE give a BIGINT, which is too small.
    """

    def spark(arguments: Sequence[Expression], types: Sequence[Type], result: Type) -> Expression:
        if types[0] == DOUBLE:
            return let(arguments, of_float)
        return spark_cast(spark_function(name, *arguments), result)

    return spark


def _whole_value(
    rounding: str, of_float: Callable[[float], float]
) -> Callable[[Any], Decimal | float]:
    def evaluate(value: Any) -> Decimal | float:
        if isinstance(value, Decimal):
            return value.to_integral_value(rounding)
        if not math.isfinite(value):
            return float(value)
        return math.copysign(of_float(value), value)

    return evaluate


def _sign_type(arguments: Sequence[Scalar]) -> Type | None:
    (value,) = arguments
    if value.type.kind == "numeric":
        return result_numeric(1, 0)
    return DOUBLE if value.type == DOUBLE else None


def _sign_spark(arguments: Sequence[Expression], types: Sequence[Type], result: Type) -> Expression:
    """Return the sign; NaN is positive to Spark's comparisons, and neither to PostgreSQL."""

    def sign(x: Expression) -> Expression:
        plus_one, zero = (spark_cast(number(n), result) for n in (1, 0))
        positive = exp.GT(this=x.copy(), expression=spark_zero(types[0]))
        parts = [_below_zero(x, types[0]), spark_cast(number(-1), result), positive, plus_one]
        if result == DOUBLE:
            parts = [spark_function("isnan", x.copy()), zero.copy(), *parts]
        missing = exp.Is(this=x.copy(), expression=exp.Null())
        return case(missing, exp.Null(), *parts, zero)

    return let(arguments, sign)


def _sign(value: Any) -> Any:
    if isinstance(value, Decimal):
        return Decimal((value > 0) - (value < 0))
    return float((value > 0) - (value < 0))


_NO_ROOT = "cannot take square root of a negative number"


def _sqrt_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    def root(x: Expression) -> Expression:
        return unless(_below_zero(x), _NO_ROOT, spark_function("sqrt", x))

    return let(arguments, root)


def _sqrt(value: float) -> float:
    if value < 0:
        raise EvaluationError(_NO_ROOT)
    return math.sqrt(value)


def _bits_type(arguments: Sequence[Scalar]) -> Type | None:
    if not all(argument.type.is_integer for argument in arguments):
        return None
    types = [argument.type for argument in arguments]
    return types[0] if len(types) == 1 else common_number(*types)


def _bits_spark(operator: type[exp.Binary]) -> Rendering:
    def spark(arguments: Sequence[Expression], _: object, result: Type) -> Expression:
        left, right = (spark_cast(argument, result) for argument in arguments)
        return exp.Paren(this=operator(this=left, expression=right))

    return spark


def _shift_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return the value's type, if the count is a constant below the type's width.

    Beyond the width the result depends on the processor.
    """
    value, count = arguments
    width = {"integer": 32, "bigint": 64}.get(value.type.kind)
    is_constant = isinstance(count, Literal) and isinstance(count.value, int)
    if width is None or not is_constant or not isinstance(count, Literal):
        return None
    return value.type if 0 <= int(str(count.value)) < width else None


def _on_double(arguments: Sequence[Scalar]) -> Type | None:
    return DOUBLE if all(argument.type == DOUBLE for argument in arguments) else None


_BITS: Typing = _bits_type
_DIGITS_NOTE = "The number of digits is a constant."

ROUNDINGS: tuple[Function, ...] = (
    Function(
        "round",
        _to_scale,
        _round_spark,
        _rounded(ROUND_HALF_UP),
        "round(numeric, n)",
        raises=True,
        note=_DIGITS_NOTE,
        safe=_has_place,
    ),
    Function(
        "trunc",
        _to_scale,
        _trunc_spark,
        _rounded(ROUND_DOWN),
        "trunc(numeric, n)",
        raises=True,
        note=_DIGITS_NOTE,
        safe=_has_place,
    ),
    Function(
        "floor",
        _whole,
        _whole_spark("floor", _float_floor),
        _whole_value(ROUND_FLOOR, math.floor),
        "floor(a)",
        raises=True,
        safe=_has_place,
    ),
    Function(
        "ceil",
        _whole,
        _whole_spark("ceil", _float_ceil),
        _whole_value(ROUND_CEILING, math.ceil),
        "ceil(a), ceiling(a)",
        raises=True,
        safe=_has_place,
    ),
    Function(
        "round float",
        _on_double,
        lambda a, *_: spark_function("rint", *a),
        lambda a: math.copysign(round(a), a) if math.isfinite(a) else a,
        "round(float)",
        note="Half to even.",
    ),
    Function(
        "trunc float",
        _on_double,
        lambda a, *_: let(a, _float_trunc),
        lambda a: math.copysign(math.trunc(a), a) if math.isfinite(a) else a,
        "trunc(float)",
    ),
    Function("sign", _sign_type, _sign_spark, _sign, "sign(a)"),
    Function("sqrt", _on_double, _sqrt_spark, _sqrt, "sqrt(float), |/ a", raises=True),
    Function("&", _BITS, _bits_spark(exp.BitwiseAnd), lambda a, b: a & b, "a & b"),
    Function("|", _BITS, _bits_spark(exp.BitwiseOr), lambda a, b: a | b, "a | b"),
    Function("#", _BITS, _bits_spark(exp.BitwiseXor), lambda a, b: a ^ b, "a # b"),
    Function(
        "bits not",
        _BITS,
        lambda a, *_: exp.Paren(this=exp.BitwiseNot(this=a[0])),
        lambda a: ~a,
        "~a",
    ),
    Function(
        ">>",
        _shift_type,
        lambda a, *_: spark_function("shiftright", a[0], _digits(a[1])),
        lambda a, b: a >> b,
        "a >> n",
        note="By a constant.",
    ),
)
