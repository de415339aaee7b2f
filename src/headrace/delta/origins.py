"""Where the values of columns come from: scans, and expressions that can be solved for a column.

    k - 1 = v     k = v + 1
    1 - k = v     k = 1 - v
    d + 7 = v     d = v - 7

So rows whose computed key is among some values are selected by a plain column. Numbers that no
column can hold become NULL, and equal nothing; a wider integer is compared by its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from headrace.algebra.scalar import Call, Column, Literal, Scalar, columns_of, substitute
from headrace.functions import call, can_raise
from headrace.plan.operators import (
    Accumulate,
    Aggregate,
    Empty,
    Filter,
    Join,
    Negate,
    Net,
    Operator,
    OuterSemiAntiJoin,
    OuterSemiAntiJoinDelta,
    Project,
    Replicate,
    Restrict,
    Scan,
    Top,
    UnionAll,
    Unnest,
    Window,
)
from headrace.types import BIGINT


@dataclass(frozen=True)
class Inverse:
    """The value of `column` for a value of the expression: itself, or one of these.

    | how | expression | column |
    |---|---|---|
    | plus | column - amount | value + amount |
    | minus | column + amount | value - amount |
    | from | amount - column | amount - value |
    | days plus | column - amount days | value + amount days |
    | days minus | column + amount days | value - amount days |
    """

    column: Column
    how: OneOf["plain", "plus", "minus", "from", "days plus", "days minus"] = "plain"
    amount: Literal | None = None

    @property
    def is_plain(self) -> bool:
        return self.how == "plain"

    def of(self, value: Scalar) -> Scalar:
        """Return the column's value, as an expression; NULL where no column could have it."""
        if self.amount is None:
            return value
        match self.how:
            case "plus":
                return call("try bigint +", value, self.amount)
            case "minus":
                return call("try bigint -", value, self.amount)
            case "from":
                return call("try bigint -", self.amount, value)
            case "days plus":
                return call("try date +", value, self.amount)
            case _:
                return call("try date -", value, self.amount)


def inverse_of(scalar: Scalar) -> Inverse | None:
    """Return the inverse that computes a column from the expression's value, None without one."""
    match scalar:
        case Column():
            return Inverse(scalar)
        case Call(function="cast", arguments=(Column() as column,)):
            whole = column.type.is_integer and scalar.type == BIGINT
            return Inverse(column) if whole else None
        case Call(function=name, arguments=(Column() as column, Literal() as amount)):
            if amount.value is None:
                return None
            match name:
                case "try integer -" | "try bigint -":
                    return Inverse(column, "plus", _wide(amount))
                case "try integer +" | "try bigint +":
                    return Inverse(column, "minus", _wide(amount))
                case "try date -":
                    return Inverse(column, "days plus", amount)
                case "try date +":
                    return Inverse(column, "days minus", amount)
        case Call(function=name, arguments=(Literal() as amount, Column() as column)):
            if amount.value is None:
                return None
            match name:
                case "try integer -" | "try bigint -":
                    return Inverse(column, "from", _wide(amount))
                case "try integer +" | "try bigint +":
                    return Inverse(column, "minus", _wide(amount))
    return None


def _wide(amount: Literal) -> Literal:
    return Literal(amount.value, BIGINT)


Path = tuple[int, ...]
"""Where in a plan a node stands: which child of which child."""


@dataclass(frozen=True)
class ScanOrigin:
    """Expressions over rows of the scan at `path`, which have all values in question."""

    path: Path
    scan: Scan
    values: tuple[Scalar, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The physical columns that the expressions read."""
        physical = {column: name for name, column in self.scan.fields}
        return tuple(
            physical[column]
            for value in self.values
            for column in sorted(columns_of(value), key=lambda column: column.id)
        )


@dataclass(frozen=True)
class ValueOrigins:
    """Where values come from; `padded` says that there are NULLs besides."""

    origins: frozenset[ScanOrigin]
    padded: bool = False


def origins_of(plan: Operator, path: Path, values: tuple[Scalar, ...]) -> ValueOrigins | None:
    """Return scans whose rows have all these values together, None if there are no such scans."""
    match plan:
        case Empty():
            return ValueOrigins(frozenset())
        case Scan():
            all_known = all(map(_is_known, values))
            return ValueOrigins(frozenset({ScanOrigin(path, plan, values)})) if all_known else None
        case UnionAll(inputs=inputs):
            return _all(origins_of(branch, (*path, i), values) for i, branch in enumerate(inputs))
        case Project(child=child, outputs=outputs):
            return _renamed(child, path, values, dict(outputs))
        case Accumulate(child=child, state=state):
            return _renamed(child, path, values, dict(state.keys))
        case Filter() | Net() | Negate() | Replicate() | Restrict() | Top():
            return origins_of(plan.children[0], (*path, 0), values)
        case Unnest(child=child) | Window(child=child) | Aggregate(child=child):
            return _of_child(child, path, 0, values)
        case Join(left=left, right=right):
            return _of_child(left, path, 0, values) or _of_child(right, path, 1, values)
        case OuterSemiAntiJoin(left=left, right=right):
            from_left = _of_child(left, path, 0, values)
            return from_left or _padded(_of_child(right, path, 1, values), values)
        case OuterSemiAntiJoinDelta(change=change, before=before, after=after):
            read = _read(values)
            if read <= set(change.columns):
                return _all(origins_of(plan.children[i], (*path, i), values) for i in (0, 1))
            if read <= set(before.columns) == set(after.columns):
                sides = _all(origins_of(plan.children[i], (*path, i), values) for i in (2, 3))
                return _padded(sides, values)
            return None
        case _:
            return None


def _is_known(value: Scalar) -> bool:
    """Return whether a value is a column of a scan, or computed from one by what cannot raise."""
    if isinstance(value, Column):
        return True
    read = columns_of(value)
    types = (value.type, *(column.type for column in read))
    exact = all(type_.row.python_value for type_ in types)
    return len(read) == 1 and exact and not can_raise(value)


def _read(values: tuple[Scalar, ...]) -> frozenset[Column]:
    return frozenset[Column]().union(*map(columns_of, values))


def _of_child(
    child: Operator, path: Path, place: int, values: tuple[Scalar, ...]
) -> ValueOrigins | None:
    if not _read(values) <= set(child.columns):
        return None
    return origins_of(child, (*path, place), values)


def _renamed(
    child: Operator, path: Path, values: tuple[Scalar, ...], names: Mapping[Column, Scalar]
) -> ValueOrigins | None:
    if not _read(values) <= names.keys():
        return None
    below = tuple(substitute(value, lambda column: names[column]) for value in values)
    return origins_of(child, (*path, 0), below) if all(map(columns_of, below)) else None


def _all(parts: Iterable[ValueOrigins | None]) -> ValueOrigins | None:
    origins: frozenset[ScanOrigin] = frozenset()
    padded = False
    for part in parts:
        if part is None:
            return None
        origins |= part.origins
        padded |= part.padded
    return ValueOrigins(origins, padded)


def _padded(origins: ValueOrigins | None, values: tuple[Scalar, ...]) -> ValueOrigins | None:
    """Return the origins on a side that is padded; None if a value is an expression.

    A padded row has NULL in its columns, but not in every expression over them.
    """
    if origins is None or not all(isinstance(value, Column) for value in values):
        return None
    return replace(origins, padded=True)
