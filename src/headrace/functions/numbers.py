"""Arithmetic with PostgreSQL's result types, rounding, overflow and division.

Decimal results have a fixed scale: sums and products keep every digit while 38 suffice; division
is computed with more digits and rounded half away from zero to the result's scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar, Value
from headrace.functions.decimals import (
    LONG_QUOTIENT,
    digits_before_point,
    product_type,
    spark_magnitude,
    spark_negated,
    spark_product,
    spark_quotient,
)
from headrace.functions.floats import as_stored, evaluated, float_arithmetic
from headrace.functions.function import (
    EvaluationError,
    Function,
    Rendering,
    spark_binary,
    spark_cast,
    spark_function,
)
from headrace.functions.spark import let
from headrace.types import DOUBLE, Type, result_numeric
from headrace.types.kinds import INTEGERS, KINDS, MAXIMUM_DIGITS

RANGE_OF_INTEGERS = {kind.name: kind.limits[1] + 1 for kind in KINDS if kind.limits is not None}
DIGITS_OF_INTEGERS = {name: len(str(limit)) for name, limit in RANGE_OF_INTEGERS.items()}
# Twice 38 digits and more: enough for every exact intermediate result.
WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


def as_numeric(type_: Type) -> Type:
    """Return the decimal that holds every value of an integer type; numerics stay as they are."""
    if type_.kind == "numeric":
        return type_
    return result_numeric(DIGITS_OF_INTEGERS[type_.kind], 0)


def own_digits(scalar: Scalar) -> Type:
    """Return the decimal of an exact number; for an integer constant, of the digits that it has."""
    if scalar.type.is_integer and isinstance(scalar, Literal) and scalar.value is not None:
        return result_numeric(len(Decimal(scalar.value).as_tuple().digits), 0)  # type: ignore[arg-type]
    return as_numeric(scalar.type)


def common_number(left: Type, right: Type) -> Type | None:
    """Return the type both operands of an arithmetic operator or comparison are brought to."""
    if not (left.is_number and right.is_number):
        return None
    if left.is_float or right.is_float:
        return left if left.kind == right.kind == "real" else DOUBLE
    if left.kind == "numeric" or right.kind == "numeric":
        left, right = as_numeric(left), as_numeric(right)
        assert left.precision and right.precision
        scale = max(left.scale or 0, right.scale or 0)
        whole = max(left.precision - (left.scale or 0), right.precision - (right.scale or 0))
        rounded, room = left.rounded or right.rounded, max(left.room, right.room)
        return result_numeric(whole + scale, scale, rounded=rounded, room=room)
    return max(left, right, key=lambda type_: INTEGERS.index(type_.kind))


def round_to(value: Decimal, scale: int) -> Decimal:
    """Return the number rounded half away from zero, as both engines round decimals."""
    return value.quantize(Decimal(1).scaleb(-scale), context=WIDE)


def fitted(value: Value, type_: Type) -> Value:
    """Return the value as the type holds it.

    Raise EvaluationError where PostgreSQL would report overflow.
    """
    if type_.is_integer:
        limit = RANGE_OF_INTEGERS[type_.kind]
        if not -limit <= value < limit:  # type: ignore[operator]
            raise EvaluationError(f"{type_.kind} out of range")
    elif type_.kind == "numeric":
        assert type_.precision is not None and type_.scale is not None
        value = round_to(Decimal(value), type_.scale)  # type: ignore[arg-type]
        if not value:
            value = value.copy_abs()
        # abs() would round to the digits of the context.
        if value.copy_abs() >= Decimal(10) ** (type_.precision - type_.scale):
            raise EvaluationError("numeric out of range")
    elif type_.is_float:
        value = as_stored(float(value), type_)  # type: ignore[arg-type]
    return value


def _types(arguments: Sequence[Scalar]) -> tuple[Type, Type]:
    left, right = arguments
    return left.type, right.type


def _sum_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return the type of a sum; None where a side has values too large for the other's digits."""
    common = common_number(*_types(arguments))
    if common is None or common.kind != "numeric":
        return common
    assert common.precision is not None and common.scale is not None
    room = max(own_digits(argument).room for argument in arguments)
    if room + common.scale > MAXIMUM_DIGITS:
        return None
    rounded = common.rounded
    return result_numeric(common.precision + 1, common.scale, rounded=rounded, room=room)


def _product_type(arguments: Sequence[Scalar]) -> Type | None:
    left, right = _types(arguments)
    common = common_number(left, right)
    if common is None or common.kind != "numeric":
        return common
    return product_type(as_numeric(left), as_numeric(right))


def _quotient_type(arguments: Sequence[Scalar]) -> Type | None:
    common = common_number(*_types(arguments))
    return LONG_QUOTIENT if common is not None and common.kind == "numeric" else common


def _remainder_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return the type of a remainder: nearer to zero than either side, so 38 digits suffice."""
    left, right = _types(arguments)
    common = common_number(left, right)
    if common is None or common.kind != "numeric":
        return None if common is None or common.is_float else common
    assert common.scale is not None
    whole = min(map(digits_before_point, map(as_numeric, (left, right))))
    return result_numeric(whole + common.scale, common.scale, rounded=common.rounded)


def _same_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return the type without its typmod: PostgreSQL's -x of numeric(10,2) is plain numeric."""
    (argument,) = arguments
    return undeclared(argument.type) if argument.type.is_number else None


def undeclared(type_: Type) -> Type:
    """Return the type of a computed value: the same digits, but not as a column declares them."""
    if type_.kind != "numeric":
        return type_
    assert type_.precision is not None and type_.scale is not None
    return result_numeric(type_.precision, type_.scale, rounded=type_.rounded, room=type_.room)


def _arithmetic(symbol: type[exp.Binary]) -> Rendering:
    def spark(
        arguments: Sequence[exp.Expression], types: Sequence[Type], result: Type
    ) -> exp.Expression:
        left, right = arguments
        if result.is_float:
            return float_arithmetic(symbol, left, right, result)
        if result.kind == "numeric":
            return _decimal_arithmetic(symbol, arguments, types, result)
        if symbol is exp.Div:
            # `div` gives BIGINT; the cast finds the one overflow, minimum / -1.
            quotient = spark_binary(exp.IntDiv, spark_cast(left, result), spark_cast(right, result))
            return spark_cast(quotient, result)
        operation = spark_binary(symbol, spark_cast(left, result), spark_cast(right, result))
        return spark_cast(operation, result)

    return spark


def _decimal_arithmetic(
    symbol: type[exp.Binary],
    arguments: Sequence[exp.Expression],
    types: Sequence[Type],
    result: Type,
) -> exp.Expression:
    left, right = (
        spark_cast(argument, as_numeric(type_)) if type_.is_integer else argument
        for argument, type_ in zip(arguments, types, strict=True)
    )
    first, second = (as_numeric(type_) for type_ in types)
    if symbol is exp.Mul:
        return spark_product(left, right, (first, second), result)
    if symbol is exp.Div:
        return spark_quotient(left, right, (first, second), result)
    return spark_cast(spark_binary(symbol, left, right), result)


def _negate_spark(
    arguments: Sequence[exp.Expression], types: Sequence[Type], result: Type
) -> exp.Expression:
    (value,), (type_,) = arguments, types
    if type_.kind == "numeric":
        return spark_cast(spark_negated(value, type_), result)
    return spark_cast(exp.Paren(this=exp.Neg(this=value)), result)


def _abs_spark(
    arguments: Sequence[exp.Expression], types: Sequence[Type], result: Type
) -> exp.Expression:
    (type_,) = types
    if type_.kind == "numeric":
        return let(arguments, lambda value: spark_cast(spark_magnitude(value, type_), result))
    return spark_cast(spark_function("abs", *arguments), result)


def _evaluation(symbol: str) -> Callable[[Value, Value], Value]:
    """Return the operation on Python values.

    PostgreSQL brings both operands to one type; Python would refuse Decimal with float.
    """

    def evaluate(left: Value, right: Value) -> Value:
        if isinstance(left, float) or isinstance(right, float):
            return evaluated(symbol, float(left), float(right))  # type: ignore[arg-type]
        if isinstance(left, Decimal) or isinstance(right, Decimal):
            return _decimal(symbol, Decimal(left), Decimal(right))  # type: ignore[arg-type]
        assert isinstance(left, int) and isinstance(right, int)
        return _integer(symbol, left, right)

    return evaluate


def _decimal(symbol: str, left: Decimal, right: Decimal) -> Decimal:
    if symbol in "/%" and right == 0:
        raise EvaluationError("division by zero")
    operations: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
        "+": WIDE.add,
        "-": WIDE.subtract,
        "*": WIDE.multiply,
        "/": WIDE.divide,
        "%": WIDE.remainder,
    }
    return operations[symbol](left, right)


def _integer(symbol: str, left: int, right: int) -> int:
    """Return the result; division truncates toward zero, a remainder has the dividend's sign."""
    match symbol:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient if symbol == "/" else left - right * quotient


NUMBERS: tuple[Function, ...] = (
    Function("+", _sum_type, _arithmetic(exp.Add), _evaluation("+"), "a + b", raises=True),
    Function("-", _sum_type, _arithmetic(exp.Sub), _evaluation("-"), "a - b", raises=True),
    Function(
        "*",
        _product_type,
        _arithmetic(exp.Mul),
        _evaluation("*"),
        "a * b",
        raises=True,
        note="A numeric product that needs more than 38 digits is rounded to the longer scale,"
        " and not compared.",
    ),
    Function(
        "/",
        _quotient_type,
        _arithmetic(exp.Div),
        _evaluation("/"),
        "a / b",
        raises=True,
        note="Integers are divided as in PostgreSQL, toward zero. A numeric quotient is computed"
        " with 18 digits after the point, up to 20 before it, and shown with 12.",
    ),
    Function(
        "%",
        _remainder_type,
        _arithmetic(exp.Mod),
        _evaluation("%"),
        "a % b, mod(a, b)",
        raises=True,
    ),
    Function(
        "negate",
        _same_type,
        _negate_spark,
        lambda a: WIDE.minus(a) if isinstance(a, Decimal) else -a,
        "-a",
        raises=True,
    ),
    Function(
        "abs",
        _same_type,
        _abs_spark,
        lambda a: WIDE.abs(a) if isinstance(a, Decimal) else abs(a),
        "abs(a)",
        raises=True,
    ),
)
