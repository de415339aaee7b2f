"""Scalar expressions: typed, immutable, with PostgreSQL's meaning.

A scalar is a column, a literal or a call of a row of `headrace.functions`. Everything that an
expression can do is a call, CASE and CAST included, so that typing, rendering, evaluating and
the question "can this raise?" each have one place.

A query as it is written has two more, which lowering takes away: `Subquery`, a query inside an
expression, and `Outer`, what such a query reads of the row that it is evaluated for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from headrace.types import BOOLEAN, Type

if TYPE_CHECKING:
    from headrace.algebra.operator import Operator

Value = bool | int | float | Decimal | str | bytes | date | datetime | tuple["Value", ...] | None


@dataclass(frozen=True)
class Column:
    """A column by identity: `id` is unique within a plan, whatever the user calls it."""

    id: str
    type: Type

    def __hash__(self) -> int:
        # Plans look columns up far more often than they make them.
        return hash(self.id)


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


@dataclass(frozen=True)
class Outer:
    """An expression of the enclosing query, evaluated on the row that the inner one is for."""

    scalar: Scalar

    @property
    def type(self) -> Type:
        return self.scalar.type


@dataclass(frozen=True)
class Subquery:
    """A query inside an expression, evaluated for each row of the enclosing one.

    | kind | value |
    |---|---|
    | exists | whether `plan` has a row |
    | scalar | the one column of its one row, NULL without a row, an error with several |
    | any | true if `test` is true on some row, else NULL if it is NULL on some, else false |
    | rows | none: the operator `Lateral` takes the rows themselves |

    `test` reads columns of `plan` and, through `Outer`, of the enclosing query.
    """

    kind: OneOf["exists", "scalar", "any", "rows"]
    plan: Operator
    test: Scalar | None = None

    @property
    def type(self) -> Type:
        return self.plan.columns[0].type if self.kind == "scalar" else BOOLEAN


Scalar = Column | Literal | Call | Outer | Subquery


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """Return every node of the expression that its own query evaluates, the outermost first."""
    yield scalar
    if isinstance(scalar, Call):
        for argument in scalar.arguments:
            yield from walk(argument)
    elif isinstance(scalar, Subquery):
        for read in outer_scalars(scalar):
            yield from walk(read)


def outer_scalars(subquery: Subquery) -> Iterator[Scalar]:
    """Return the expressions of the enclosing query that an inner query reads."""
    if subquery.test is not None:
        yield from _read_outside(subquery.test)
    yield from outer_reads(subquery.plan)


def outer_reads(plan: Operator) -> Iterator[Scalar]:
    """Return the expressions of the query around a plan that the plan reads."""
    for scalar in plan.scalars:
        yield from _read_outside(scalar)
    for child in plan.children:
        yield from outer_reads(child)


def _read_outside(scalar: Scalar) -> Iterator[Scalar]:
    for node in walk(scalar):
        if isinstance(node, Outer):
            yield node.scalar


def columns_of(scalar: Scalar) -> frozenset[Column]:
    """Return the columns that the expression reads of its own query's rows."""
    return frozenset(node for node in walk(scalar) if isinstance(node, Column))


def substitute(scalar: Scalar, with_: Callable[[Column], Scalar]) -> Scalar:
    """Return the expression with every column of its own query replaced."""
    match scalar:
        case Column():
            return with_(scalar)
        case Call(arguments=arguments):
            return replace(scalar, arguments=tuple(substitute(a, with_) for a in arguments))
        case Subquery():
            return map_outer(scalar, lambda read: substitute(read, with_))
        case _:
            return scalar


def map_outer(subquery: Subquery, change: Callable[[Scalar], Scalar]) -> Subquery:
    """Return the inner query with the expressions that it reads of the enclosing one replaced."""

    def outward(outer: Outer) -> Scalar:
        return Outer(change(outer.scalar))

    test = None if subquery.test is None else map_outers(subquery.test, outward)
    return replace(subquery, plan=map_outers_of_plan(subquery.plan, outward), test=test)


def map_outers(scalar: Scalar, change: Callable[[Outer], Scalar]) -> Scalar:
    """Return the expression with everything that it reads of the enclosing query replaced."""
    match scalar:
        case Outer():
            return change(scalar)
        case Call(arguments=arguments):
            return replace(scalar, arguments=tuple(map_outers(a, change) for a in arguments))
        case Subquery():
            return map_outer(scalar, lambda read: map_outers(read, change))
        case _:
            return scalar


def map_outers_of_plan(plan: Operator, change: Callable[[Outer], Scalar]) -> Operator:
    """Return the plan with everything that it reads of the query around it replaced."""
    children = (map_outers_of_plan(child, change) for child in plan.children)
    scalars = tuple(map_outers(scalar, change) for scalar in plan.scalars)
    return plan.with_children(*children).with_scalars(scalars)
