"""The terms that hidden sums are made of."""

from __future__ import annotations

from headrace.algebra.scalar import Call, Literal, Scalar
from headrace.types import BIGINT, BOOLEAN, DOUBLE, Type, result_numeric


def one_if(condition: Scalar) -> Scalar:
    """1 where the condition is true, else 0."""
    return Call("case", (condition, Literal(1, BIGINT), Literal(0, BIGINT)), BIGINT)


def present(argument: Scalar) -> Scalar:
    """1 where the argument is not NULL, else 0."""
    missing = Call("is null", (argument,), BOOLEAN)
    return Call("case", (missing, Literal(0, BIGINT), Literal(1, BIGINT)), BIGINT)


def filled(argument: Scalar) -> Scalar:
    """The number, or 0 where it is NULL."""
    zero = Call("cast", (Literal(0, BIGINT),), argument.type)
    return Call("coalesce", (argument, zero), argument.type)


def or_null(count: Scalar, value: Scalar, type_: Type, *, below: int = 1) -> Scalar:
    """NULL where fewer than `below` inputs were present, else the value."""
    empty = Call("<", (count, Literal(below, BIGINT)), BOOLEAN)
    if below == 1:
        empty = Call("=", (count, Literal(0, BIGINT)), BOOLEAN)
    return Call("case", (empty, Literal(None, type_), value), type_)


DIGITS_OF_COUNTS = 19
"""A relation has fewer than 2^63 rows."""


def total_type(term: Type) -> Type:
    """The type of sums of a decimal: as many digits more as a number of rows has."""
    assert term.precision is not None and term.scale is not None
    precision = term.precision + DIGITS_OF_COUNTS
    return result_numeric(precision, term.scale, rounded=term.rounded, room=term.room)


def state_type(term: Type) -> Type:
    """The type that sums of `term` are kept in."""
    if term.is_integer:
        return BIGINT
    if term.kind == "numeric":
        return total_type(term)
    assert term.kind == "double precision"
    return DOUBLE
