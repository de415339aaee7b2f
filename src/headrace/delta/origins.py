"""Where the values of a plan's columns come from: the scans that have all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

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
from headrace.plan.scalar import Column, Scalar

Path = tuple[int, ...]
"""Where in a plan a node stands: which child of which child."""


@dataclass(frozen=True)
class Origin:
    """Physical columns of the scan at `path`, whose rows have all values in question."""

    path: Path
    scan: Scan
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """Where values come from; `padded` says that there are NULLs besides."""

    origins: frozenset[Origin]
    padded: bool = False


def origins_of(plan: Operator, path: Path, columns: tuple[Column, ...]) -> Found | None:
    """Scans that have all values of these columns together, None if they are computed."""
    match plan:
        case Empty():
            return Found(frozenset())
        case Scan(fields=fields):
            physical = {column: name for name, column in fields}
            return Found(frozenset({Origin(path, plan, tuple(physical[c] for c in columns))}))
        case UnionAll(inputs=inputs):
            return _all(origins_of(one, (*path, i), columns) for i, one in enumerate(inputs))
        case Project(child=child, outputs=outputs):
            return _renamed(child, path, columns, dict(outputs))
        case Accumulate(child=child, state=state):
            return _renamed(child, path, columns, dict(state.keys))
        case Filter() | Net() | Negate() | Replicate() | Restrict() | Top():
            return origins_of(plan.children[0], (*path, 0), columns)
        case Unnest(child=child) | Window(child=child) | Aggregate(child=child):
            return _of_child(child, path, 0, columns)
        case Join(left=left, right=right):
            return _of_child(left, path, 0, columns) or _of_child(right, path, 1, columns)
        case MatchJoin(left=left, right=right):
            found = _of_child(left, path, 0, columns)
            return found or _padded(_of_child(right, path, 1, columns))
        case Rematch(change=change, before=before, after=after):
            if set(columns) <= set(change.columns):
                return _all(origins_of(plan.children[i], (*path, i), columns) for i in (0, 1))
            if set(columns) <= set(before.columns) == set(after.columns):
                sides = _all(origins_of(plan.children[i], (*path, i), columns) for i in (2, 3))
                return _padded(sides)
            return None
        case _:
            return None


def _of_child(child: Operator, path: Path, place: int, columns: tuple[Column, ...]) -> Found | None:
    if not set(columns) <= set(child.columns):
        return None
    return origins_of(child, (*path, place), columns)


def _renamed(
    child: Operator, path: Path, columns: tuple[Column, ...], names: Mapping[Column, Scalar]
) -> Found | None:
    below = [scalar for column in columns if isinstance(scalar := names.get(column), Column)]
    return origins_of(child, (*path, 0), tuple(below)) if len(below) == len(columns) else None


def _all(parts: Iterable[Found | None]) -> Found | None:
    origins: frozenset[Origin] = frozenset()
    padded = False
    for part in parts:
        if part is None:
            return None
        origins |= part.origins
        padded |= part.padded
    return Found(origins, padded)


def _padded(found: Found | None) -> Found | None:
    return None if found is None else replace(found, padded=True)
