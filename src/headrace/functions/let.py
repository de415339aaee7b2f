"""Naming a subexpression on Spark, so that a rule may use its operands several times.

SQL has no `let`. A rule that mentions its operands three times would make nested expressions grow
as 3^depth, in text and in planning time; a lambda over a one-element array binds them instead. It
is slower per row than repeating a short expression, so short ones are repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from sqlglot import exp

from headrace.functions.function import spark_function

LONGEST_REPEATED = 80
"""Syntax nodes of an operand that is still repeated rather than bound."""


def let(
    operands: Sequence[exp.Expression],
    body: Callable[..., exp.Expression],
) -> exp.Expression:
    """`body` over the operands, each evaluated once if it is long; copies are made here."""
    if not any(_is_long(operand) for operand in operands):
        return body(*operands)
    return bound(operands, body)


def bound(
    operands: Sequence[exp.Expression],
    body: Callable[..., exp.Expression],
    name: str = "operands",
) -> exp.Expression:
    """`body` over the operands, each evaluated once, and before a lambda in it runs.

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
