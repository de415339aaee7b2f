"""Small Spark expressions that several rules are made of."""

from __future__ import annotations

from sqlglot import exp

from headrace.functions.function import spark_cast, spark_function
from headrace.types import BIGINT, INTEGER

Expression = exp.Expression


def number(value: int) -> Expression:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def string(value: str) -> Expression:
    return exp.Literal.string(value)


def long(expression: Expression) -> Expression:
    """As BIGINT, where sums of integers do not overflow."""
    return spark_cast(expression, BIGINT)


def at_least(expression: Expression, constant: int) -> Expression:
    """The larger of both; NULL stays NULL, which Spark's own `greatest` leaves out."""
    less = exp.LT(this=expression.copy(), expression=number(constant))
    return case(less, number(constant), expression)


def short(expression: Expression) -> Expression:
    """A BIGINT as the INT that Spark's functions of text take, cut to its largest value."""
    more = exp.GT(this=expression.copy(), expression=number(2**31 - 1))
    return spark_cast(case(more, number(2**31 - 1), expression), INTEGER)


def plus(left: Expression, right: Expression) -> Expression:
    return exp.Paren(this=exp.Add(this=left, expression=right))


def minus(left: Expression, right: Expression) -> Expression:
    return exp.Paren(this=exp.Sub(this=left, expression=right))


def times(left: Expression, right: Expression) -> Expression:
    return exp.Paren(this=exp.Mul(this=left, expression=right))


def case(*parts: exp.Expr) -> Expression:
    """CASE of test, value, test, value, …, default."""
    pairs = zip(parts[:-1:2], parts[1::2], strict=True)
    ifs = [exp.If(this=test, true=value) for test, value in pairs]
    return exp.Paren(this=exp.Case(ifs=ifs, default=parts[-1]))


def fails(message: str) -> Expression:
    """An expression of any type whose evaluation is an error."""
    return spark_function("raise_error", string(message))


def unless(test: exp.Expr, message: str, value: Expression, *operands: Expression) -> Expression:
    """The value; an error where the test holds and no operand is NULL."""
    present = [exp.Not(this=exp.Is(this=o.copy(), expression=exp.Null())) for o in operands]
    return case(exp.and_(*present, test), fails(message), value)
