"""Conditions that are never true where some columns are all NULL.

    σ[c](L ⟕ R)  =  σ[c](L ⋈ R)      c rejects the NULLs of R

Only what is plain is found: strict functions of a column, IS NOT NULL, and their AND and OR.
"""

from __future__ import annotations

from headrace.algebra.scalar import Call, Column, Literal, Scalar
from headrace.functions import FUNCTION_BY_NAME


def rejects_nulls(condition: Scalar, columns: frozenset[Column]) -> bool:
    """Whether the condition is false or NULL on every row where all `columns` are NULL."""
    match condition:
        case Call(function="and", arguments=arguments):
            return any(rejects_nulls(argument, columns) for argument in arguments)
        case Call(function="or", arguments=arguments):
            return all(rejects_nulls(argument, columns) for argument in arguments)
        case Call(function="not", arguments=(Call(function="is null") as test,)):
            return is_null(test.arguments[0], columns)
        case Literal(value=value):
            return value is not True
        case _:
            return is_null(condition, columns)


def is_null(scalar: Scalar, columns: frozenset[Column]) -> bool:
    """Whether the expression is NULL on every row where all `columns` are NULL."""
    match scalar:
        case Column():
            return scalar in columns
        case Literal(value=value):
            return value is None
        case Call(function="coalesce", arguments=arguments):
            return all(is_null(argument, columns) for argument in arguments)
        case Call(function="in", arguments=(first, *_)):
            return is_null(first, columns)
        case Call(function=name, arguments=arguments):
            return FUNCTION_BY_NAME[name].strict and any(
                is_null(argument, columns) for argument in arguments
            )
        case _:
            return False
