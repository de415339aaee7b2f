"""Scalar expressions: typed, immutable, with PostgreSQL's meaning.

A scalar is a column, a literal or a call of a row of `headrace.functions`. Everything that an
expression can do is a call, CASE and CAST included, so that typing, rendering, evaluating and
the question "can this raise?" each have one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal

from headrace.types import Type

Value = bool | int | float | Decimal | str | bytes | date | datetime | None


@dataclass(frozen=True)
class Column:
    """A column by identity: `id` is unique within a plan, whatever the user calls it."""

    id: str
    type: Type


@dataclass(frozen=True)
class Literal:
    """A constant; `value` None is a typed NULL."""

    value: Value
    type: Type


@dataclass(frozen=True)
class Call:
    """A function of `headrace.functions.FUNCTIONS` applied to scalars."""

    function: str
    arguments: tuple[Scalar, ...]
    type: Type


Scalar = Column | Literal | Call


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """Every node of the expression, the outermost first."""
    yield scalar
    if isinstance(scalar, Call):
        for argument in scalar.arguments:
            yield from walk(argument)


def columns_of(scalar: Scalar) -> frozenset[Column]:
    """The columns that the expression reads."""
    return frozenset(node for node in walk(scalar) if isinstance(node, Column))


def substitute(scalar: Scalar, with_: Callable[[Column], Scalar]) -> Scalar:
    """The expression with every column replaced."""
    if isinstance(scalar, Column):
        return with_(scalar)
    if isinstance(scalar, Call):
        return replace(
            scalar, arguments=tuple(substitute(argument, with_) for argument in scalar.arguments)
        )
    return scalar
