"""Consequences of conditions: columns that they make equal, and rows of NULL that they reject.

A condition rejects the NULLs of R if it is never true where all columns of R are NULL:

    σ[c](L ⟕ R)  =  σ[c](L ⋈ R)      c rejects the NULLs of R

Only plain cases are detected: strict functions of a column, IS NOT NULL, and their AND and OR.

Equal columns form classes: a = b and b = c are one class {a, b, c}. Only `=` between columns, which
no NULL passes, counts, and only between types of which equality is transitive: a = b and b = c
imply a = c. An integer and a float are compared as floats, so that two integers may equal one float
and not each other.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.algebra.scalar import Call, Column, Literal, Scalar
from headrace.functions import FUNCTION_BY_NAME
from headrace.types import Type


def rejects_nulls(condition: Scalar, columns: frozenset[Column]) -> bool:
    """Return whether the condition is false or NULL on every row where all `columns` are NULL."""
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
    """Return whether the expression is NULL on every row where all `columns` are NULL."""
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


_TEXTS = frozenset({"text", "character varying"})

Pair = tuple[Column, Column]


def equal_pair(term: Scalar) -> Pair | None:
    """Return the two columns that a condition equates, if their equality is transitive."""
    match term:
        case Call(function="=", arguments=(Column() as left, Column() as right)):
            return (left, right) if left != right and alike(left.type, right.type) else None
    return None


def alike(left: Type, right: Type) -> bool:
    """Return whether equality is transitive within columns of these types and others like them."""
    if left.is_integer and right.is_integer:
        return True
    return left == right or {left.kind, right.kind} <= _TEXTS


class EqualColumns:
    """Columns in classes, by the pairs that were joined."""

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        self._above: dict[Column, Column] = {}
        for left, right in pairs:
            self.join(left, right)

    def join(self, one: Column, other: Column) -> bool:
        """Record that two columns are equal, and return whether that is new."""
        first, second = self._of(one), self._of(other)
        if first == second:
            return False
        self._above[second] = first
        return True

    def others(self, column: Column) -> tuple[Column, ...]:
        """Return the other columns of the column's class."""
        first = self._of(column)
        return tuple(
            member for member in self._above if member != column and self._of(member) == first
        )

    def classes(self, columns: Iterable[Column]) -> tuple[tuple[Column, ...], ...]:
        """Return the classes that have two or more of these columns, in their order."""
        columns_by_class: dict[Column, list[Column]] = {}
        for column in columns:
            if column in self._above:
                columns_by_class.setdefault(self._of(column), []).append(column)
        return tuple(tuple(members) for members in columns_by_class.values() if len(members) > 1)

    def _of(self, column: Column) -> Column:
        """Return the column that stands for its class."""
        above = self._above.setdefault(column, column)
        while above != column:
            self._above[column] = self._above[above]
            column, above = above, self._above[above]
        return column
