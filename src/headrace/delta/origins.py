"""Where the values of a plan's columns come from: the scans that have all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from headrace.algebra.scalar import Column, Scalar, columns_of, substitute
from headrace.functions import can_raise
from headrace.plan.operators import (
    Accumulate,
    Aggregate,
    Empty,
    Filter,
    Join,
    MatchJoin,
    Negate,
    Net,
    Operator,
    Project,
    Rematch,
    Replicate,
    Restrict,
    Scan,
    Top,
    UnionAll,
    Unnest,
    Window,
)

Path = tuple[int, ...]
"""Where in a plan a node stands: which child of which child."""


# What Arrow gives as a Python value of these is what expressions are defined over.
COMPUTED = frozenset(
    {"boolean", "smallint", "integer", "bigint", "text", "character varying", "date"}
)


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
    """Scans whose rows have all these values together, None if there are none such."""
    match plan:
        case Empty():
            return ValueOrigins(frozenset())
        case Scan():
            known = all(map(_is_known, values))
            return ValueOrigins(frozenset({ScanOrigin(path, plan, values)})) if known else None
        case UnionAll(inputs=inputs):
            return _all(origins_of(one, (*path, i), values) for i, one in enumerate(inputs))
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
        case MatchJoin(left=left, right=right):
            found = _of_child(left, path, 0, values)
            return found or _padded(_of_child(right, path, 1, values), values)
        case Rematch(change=change, before=before, after=after):
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
    """Whether it is a column of a scan, or can be computed from one without an error."""
    if isinstance(value, Column):
        return True
    read = columns_of(value)
    kinds = {value.type.kind, *(column.type.kind for column in read)}
    return len(read) == 1 and kinds <= COMPUTED and not can_raise(value)


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


def _padded(found: ValueOrigins | None, values: tuple[Scalar, ...]) -> ValueOrigins | None:
    """What is found on a side that is padded: columns are NULL then, expressions need not be."""
    if found is None or not all(isinstance(value, Column) for value in values):
        return None
    return replace(found, padded=True)
