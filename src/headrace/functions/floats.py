"""Float arithmetic: PostgreSQL reports overflow and underflow, Spark gives infinity and zero."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable

from sqlglot import exp

from headrace.functions.function import EvaluationError, spark_binary, spark_cast, spark_function
from headrace.functions.spark import let
from headrace.types import Type


def float_arithmetic(
    symbol: type[exp.Binary], left: exp.Expression, right: exp.Expression, type_: Type
) -> exp.Expression:
    """Return the operation on two floats of the type, with PostgreSQL's range checks."""

    def checked(a: exp.Expression, b: exp.Expression) -> exp.Expression:
        # Spark divides two FLOATs into a DOUBLE.
        result = spark_cast(spark_binary(symbol, a.copy(), b.copy()), type_)
        overflow = exp.and_(_infinite(result), exp.not_(_infinite(a)), exp.not_(_infinite(b)))
        failures = [overflow]
        if symbol in (exp.Mul, exp.Div):
            failures.append(_underflow(result, a, b))
        message = exp.Literal.string("value out of range")
        raised = exp.If(this=exp.or_(*failures), true=spark_function("raise_error", message))
        if symbol is not exp.Div:
            return exp.Case(ifs=[raised], default=result)
        # NaN / 0 is NaN in PostgreSQL and an error on Spark.
        nan = exp.and_(spark_function("isnan", a.copy()), _zero(b))
        return exp.Case(ifs=[exp.If(this=nan, true=a.copy()), raised], default=result)

    return let((spark_cast(left, type_), spark_cast(right, type_)), checked)


def _zero(expression: exp.Expression) -> exp.Expression:
    return exp.EQ(this=expression.copy(), expression=exp.Literal.number(0))


def _infinite(expression: exp.Expression) -> exp.Expression:
    infinities = [
        spark_function("double", exp.Literal.string(text)) for text in ("Infinity", "-Infinity")
    ]
    return exp.In(this=expression.copy(), expressions=infinities)


def _underflow(
    result: exp.Expression, left: exp.Expression, right: exp.Expression
) -> exp.Condition:
    """Return the test for a zero made of operands that are not; x / infinity is a true zero."""
    return exp.and_(
        _zero(result), exp.not_(_zero(left)), exp.not_(_zero(right)), exp.not_(_infinite(right))
    )


def narrowed(value: exp.Expression, type_: Type) -> exp.Expression:
    """Return a DOUBLE as a FLOAT, with PostgreSQL's range checks."""
    result = spark_cast(value.copy(), type_)
    overflow = exp.and_(_infinite(result), exp.not_(_infinite(value)))
    underflow = exp.and_(_zero(result), exp.not_(_zero(value)))
    message = exp.Literal.string("value out of range")
    raised = spark_function("raise_error", message)
    return exp.Case(ifs=[exp.If(this=exp.or_(overflow, underflow), true=raised)], default=result)


def evaluated(symbol: str, left: float, right: float) -> float:
    """Return the operation in double precision, with the same checks."""
    operation: Callable[[float, float], float] = _OPERATIONS[symbol]
    if symbol == "/" and right == 0:
        if math.isnan(left):
            return left
        raise EvaluationError("division by zero")
    try:
        result = operation(left, right)
    except OverflowError:
        result = math.inf
    if math.isinf(result) and not (math.isinf(left) or math.isinf(right)):
        raise EvaluationError("value out of range: overflow")
    if symbol in "*/" and result == 0 and left != 0 and right != 0 and not math.isinf(right):
        raise EvaluationError("value out of range: underflow")
    return result


_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def as_stored(value: float, type_: Type) -> float:
    """Return the nearest value of the type; EvaluationError if a finite one has no place in it."""
    if type_.kind != "real" or not math.isfinite(value):
        return value
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise EvaluationError("value out of range: overflow") from None
    if nearest == 0 and value != 0:
        raise EvaluationError("value out of range: underflow")
    return nearest
