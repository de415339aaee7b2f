"""-0.0 equals 0.0: which of them is shown must not depend on the order of rows."""

from __future__ import annotations

from sqlglot import exp

from headrace.algebra.scalar import Call, Literal, Scalar, Value
from headrace.functions.function import spark_cast
from headrace.functions.spark import case
from headrace.types import BOOLEAN, Type


def without_sign_of_zero(argument: Scalar) -> Scalar:
    """The expression, 0.0 where it is a zero of either sign."""
    if not argument.type.is_float:
        return argument
    zero = Literal(0.0, argument.type)
    is_zero = Call("=", (argument, zero), BOOLEAN)
    return Call("case", (is_zero, zero, argument), argument.type)


def unsigned_zero(value: Value) -> Value:
    """The same of a value."""
    return 0.0 if isinstance(value, float) and value == 0 else value


def spark_unsigned_zero(value: exp.Expression, type_: Type) -> exp.Expression:
    """The same on Spark."""
    if not type_.is_float:
        return value
    zero = spark_cast(exp.Literal.number(0), type_)
    return case(exp.EQ(this=value, expression=zero), zero.copy(), value.copy())
