"""Small Spark expressions that several rules share, and names for subexpressions.

SQL has no `let`. A rule that mentions its operands three times would make nested expressions grow
as 3^depth, in text and in planning time; a lambda over a one-element array binds them instead. It
is slower per row than repeating a short expression, so short expressions are repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from sqlglot import exp

from headrace.functions.function import spark_cast, spark_function
from headrace.types import BIGINT, INTEGER

LONGEST_REPEATED = 80
"""Syntax nodes of an operand that is still repeated rather than bound."""


def let(
    operands: Sequence[exp.Expression],
    body: Callable[..., exp.Expression],
) -> exp.Expression:
    """Return `body` over the operands, each evaluated once if any is long."""
    if not any(_is_long(operand) for operand in operands):
        return body(*operands)
    return bound(operands, body)


def bound(
    operands: Sequence[exp.Expression],
    body: Callable[..., exp.Expression],
    name: str = "operands",
) -> exp.Expression:
    """Return `body` over the operands, each evaluated once, and before a lambda in it runs.

    A body that is inside another one and reads what that one binds needs another `name`.
    """
    # Lambda variables are scoped by Spark: an inner `operands` hides an outer one.
    names = [f"o{i}" for i in range(len(operands))]
    fields: list[exp.Expression] = []
    for field, operand in zip(names, operands, strict=True):
        fields += (exp.Literal.string(field), operand)
    row = spark_function("named_struct", *fields)
    variable = exp.to_identifier(name)
    inner = body(*(exp.Column(this=exp.to_identifier(n), table=variable.copy()) for n in names))
    mapped = exp.Lambda(this=inner, expressions=[variable])
    array = spark_function("transform", spark_function("array", row), mapped)
    return spark_function("element_at", array, exp.Literal.number(1))


def _is_long(expression: exp.Expression) -> bool:
    return next(islice(expression.walk(), LONGEST_REPEATED, None), None) is not None


Expression = exp.Expression


def number(value: int) -> Expression:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def string(value: str) -> Expression:
    return exp.Literal.string(value)


def long(expression: Expression) -> Expression:
    """Return the expression as BIGINT, where sums of integers do not overflow."""
    return spark_cast(expression, BIGINT)


def at_least(expression: Expression, constant: int) -> Expression:
    """Return the larger of both; NULL stays NULL, which Spark's own `greatest` leaves out."""
    less = exp.LT(this=expression.copy(), expression=number(constant))
    return case(less, number(constant), expression)


def short(expression: Expression) -> Expression:
    """Return a BIGINT as the INT that Spark's functions of text take, cut to its largest value."""
    more = exp.GT(this=expression.copy(), expression=number(2**31 - 1))
    return spark_cast(case(more, number(2**31 - 1), expression), INTEGER)


def plus(left: Expression, right: Expression) -> Expression:
    return exp.Paren(this=exp.Add(this=left, expression=right))


def minus(left: Expression, right: Expression) -> Expression:
    return exp.Paren(this=exp.Sub(this=left, expression=right))


def times(left: Expression, right: Expression) -> Expression:
    return exp.Paren(this=exp.Mul(this=left, expression=right))


def case(*parts: exp.Expr) -> Expression:
    """Return CASE of test, value, test, value, …, default."""
    pairs = zip(parts[:-1:2], parts[1::2], strict=True)
    ifs = [exp.If(this=test, true=value) for test, value in pairs]
    return exp.Paren(this=exp.Case(ifs=ifs, default=parts[-1]))


def fails(message: str) -> Expression:
    """Return an expression of any type whose evaluation is an error."""
    return spark_function("raise_error", string(message))


def unless(test: exp.Expr, message: str, value: Expression, *operands: Expression) -> Expression:
    """Return the value; an error where the test holds and no operand is NULL."""
    present = [exp.Not(this=exp.Is(this=o.copy(), expression=exp.Null())) for o in operands]
    return case(exp.and_(*present, test), fails(message), value)
