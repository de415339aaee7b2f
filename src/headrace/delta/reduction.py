"""Which rows of a state a query over changes can use at all: those that reach the change.

In a term of a delta only rows that join with the change matter. So every scan of a state may be
restricted to the keys that the change has, and what joins with that scan to the keys found there,
outward from the change:

    ΔL ⋈ O ⋈ C        O: o_orderkey among those of ΔL        C: c_custkey among those of that O

A restriction only takes away rows that would meet no partner, or whose results an operator above
drops. So it is enough that each scan is given at least the rows that it is restricted to: one input
may serve several scans, and restrictions may be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from headrace.plan.operators import (
    Accumulate,
    Aggregate,
    Filter,
    Join,
    MatchJoin,
    Merge,
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
    Version,
    Window,
)
from headrace.plan.passes.push_filters import conjuncts
from headrace.plan.scalar import Call, Column, Scalar

Path = tuple[int, ...]
"""Where in a plan a node stands: which child of which child."""

GIVEN = ("change", "stale")
"""Versions that are there before anything is restricted."""

# Their stored values are equal where both engines call them equal.
PLAIN = frozenset({"boolean", "text", "character varying", "date", "uuid", "bytea"})


@dataclass(frozen=True)
class Origin:
    """Physical columns of the scan at `path`, whose rows have all values in question."""

    path: Path
    scan: Scan
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Restriction:
    """Of the scan at `path` only rows matter whose `columns` are among the keys of the origins.

    `null_safe` says that NULL equals NULL, and `padded` that there is a key of NULLs besides.
    """

    path: Path
    scan: Scan
    columns: tuple[str, ...]
    origins: tuple[Origin, ...]
    null_safe: bool
    padded: bool


@dataclass(frozen=True)
class Reduction:
    """The restrictions of a plan, in an order in which their keys are known.

    `whole` are inputs, a relation and a version each, with a scan that is not restricted.
    """

    restrictions: tuple[Restriction, ...]
    whole: frozenset[tuple[str, Version]]


def reduction(plan: Operator) -> Reduction:
    """One restriction for each scan of a state that has any: the fewest steps from the change."""
    found: dict[Path, list[Restriction]] = {}
    scans: dict[Path, Scan] = {}
    known: set[Path] = set()
    for path, scan, demands in _demanded(plan, (), ()):
        scans[path] = scan
        if scan.version in GIVEN:
            known.add(path)
        else:
            found[path] = [_restriction(path, scan, demand) for demand in demands]
    ordered: list[Restriction] = []
    while True:
        reached = [
            best
            for path, ways in found.items()
            if path not in known
            and (best := _best(one for one in ways if _origins_known(one, known))) is not None
        ]
        if not reached:
            whole = {(s.relation, s.version) for path, s in scans.items() if path not in known}
            return Reduction(tuple(ordered), frozenset(whole))
        ordered += reached
        known |= {one.path for one in reached}


def _origins_known(one: Restriction, known: set[Path]) -> bool:
    return all(origin.path in known for origin in one.origins)


def _best(ways: Iterable[Restriction]) -> Restriction | None:
    """The one with the most columns: it lets the fewest rows through."""
    return max(ways, key=lambda one: len(one.columns), default=None)


@dataclass(frozen=True)
class _Demand:
    """Only rows of a node whose `columns` are among the keys of the origins matter."""

    columns: tuple[Column, ...]
    origins: frozenset[Origin]
    null_safe: bool
    padded: bool

    def mapped(self, to: dict[Column, Column]) -> Iterator[_Demand]:
        """The demand on other names of its columns; those without one are left out."""
        places = [i for i, column in enumerate(self.columns) if column in to]
        if places:
            columns = tuple(to[self.columns[i]] for i in places)
            origins = frozenset(
                replace(origin, columns=tuple(origin.columns[i] for i in places))
                for origin in self.origins
            )
            yield replace(self, columns=columns, origins=origins)

    def on(self, columns: Iterable[Column]) -> Iterator[_Demand]:
        """The part of the demand that is about these columns."""
        return self.mapped({column: column for column in columns})


Demands = tuple[_Demand, ...]


@dataclass(frozen=True)
class _Equal:
    """Columns of the left and the right side that are equal in all pairs of a join."""

    columns: tuple[Column, Column]
    null_safe: bool

    @property
    def as_stored(self) -> bool:
        """Whether the values are equal just where their stored forms are."""
        one, other = (column.type for column in self.columns)
        if one.is_integer and other.is_integer:
            return True
        return {one.kind, other.kind} <= PLAIN and (one.kind == other.kind or one.is_text)


def _restriction(path: Path, scan: Scan, demand: _Demand) -> Restriction:
    physical = {column: name for name, column in scan.fields}
    origins = tuple(sorted(demand.origins, key=lambda origin: origin.path))
    columns = tuple(physical[column] for column in demand.columns)
    return Restriction(path, scan, columns, origins, demand.null_safe, demand.padded)


def _demanded(plan: Operator, path: Path, demands: Demands) -> Iterator[tuple[Path, Scan, Demands]]:
    """Every scan with the demands on it, given those on the plan's own rows."""
    if isinstance(plan, Scan):
        yield path, plan, demands
        return
    for place, child in enumerate(plan.children):
        yield from _demanded(child, (*path, place), _passed_on(plan, path, place, demands))


def _passed_on(plan: Operator, path: Path, place: int, demands: Demands) -> Demands:
    """What a node demands of one of its children; of those not named here, nothing."""
    match plan:
        case Filter() | Net() | Negate() | Replicate() | UnionAll():
            return demands
        case Project(outputs=outputs):
            same = {column: value for column, value in outputs if isinstance(value, Column)}
            return tuple(one for demand in demands for one in demand.mapped(same))
        case Unnest(child=child):
            return tuple(one for demand in demands for one in demand.on(child.columns))
        case Window(keys=keys) | Top(keys=keys) | Aggregate(keys=keys):
            # Groups and partitions are taken away whole.
            return tuple(one for demand in demands for one in demand.on(keys))
        case Accumulate(state=state):
            return tuple(one for demand in demands for one in demand.mapped(dict(state.keys)))
        case Join(left=left, right=right):
            children = (left, right)
            equal = tuple(_equal(plan.condition, left, right))
            mine, other = children[place], 1 - place
            own = _own(demands, mine, equal, place)
            return own + _among(children[other], (*path, other), equal, place)
        case MatchJoin(left=left, right=right):
            equal = tuple(_equal(plan.condition, left, right))
            if place == 1:
                # What the preserved side does not need matched, nobody does.
                own = _own(_of(demands, left), right, equal, 1)
                return own + _among(left, (*path, 0), equal, 1)
            own = tuple(one for demand in demands for one in demand.on(left.columns))
            return own + (_among(right, (*path, 1), equal, 0) if plan.kind == "semi" else ())
        case Rematch(change=change, touched=touched, after=after):
            equal = tuple(_equal(plan.condition, touched, after))
            kept = _of(demands, touched)
            if place < 2:
                return kept
            rows = UnionAll((change, touched))
            return _own(kept, after, equal, 1) + _among(rows, path, equal, 1)
        case Restrict(touched=touched, keys=keys) if place == 0:
            pairs = tuple(_Equal(pair, null_safe=True) for pair in keys)
            return demands + _among(touched, (*path, 1), pairs, 0)
        case Merge(change=change, state=state) if place == 0:
            pairs = tuple(_Equal(pair, null_safe=True) for pair in state.keys)
            return _among(change, (*path, 1), pairs, 0)
        case _:
            return ()


def _of(demands: Demands, side: Operator) -> Demands:
    """The demands that are about columns of a side."""
    return tuple(one for demand in demands for one in demand.on(side.columns))


def _own(demands: Demands, mine: Operator, equal: tuple[_Equal, ...], place: int) -> Demands:
    """Demands from above on a side of a join: on its columns, or on what they are equal to."""
    names = {column: column for column in mine.columns}
    for pair in equal:
        if not pair.null_safe:
            names.setdefault(pair.columns[1 - place], pair.columns[place])
    return tuple(one for demand in demands for one in demand.mapped(names))


def _among(other: Operator, path: Path, equal: tuple[_Equal, ...], place: int) -> Demands:
    """A side's rows are to have the keys of the other side, which stands at `path`."""
    demands: list[_Demand] = []
    for null_safe in (False, True):
        pairs = [pair for pair in equal if pair.null_safe == null_safe and pair.as_stored]
        together = _matching(other, path, pairs, place) if pairs else None
        if together is not None:
            demands.append(together)
        else:
            apart = (_matching(other, path, [pair], place) for pair in pairs)
            demands += [one for one in apart if one is not None]
    return tuple(demands)


def _matching(other: Operator, path: Path, pairs: list[_Equal], place: int) -> _Demand | None:
    found = _origins(other, path, tuple(pair.columns[1 - place] for pair in pairs))
    if found is None:
        return None
    columns = tuple(pair.columns[place] for pair in pairs)
    return _Demand(columns, found.origins, pairs[0].null_safe, found.padded)


def _equal(condition: Scalar | None, left: Operator, right: Operator) -> Iterator[_Equal]:
    """The columns of the sides that a condition equates."""
    for term in () if condition is None else conjuncts(condition):
        if not isinstance(term, Call) or term.function not in ("=", "is not distinct from"):
            continue
        one, other = term.arguments
        if not isinstance(one, Column) or not isinstance(other, Column):
            continue
        null_safe = term.function != "="
        if one in left.columns and other in right.columns:
            yield _Equal((one, other), null_safe)
        elif other in left.columns and one in right.columns:
            yield _Equal((other, one), null_safe)


@dataclass(frozen=True)
class _Found:
    """Where values come from; `padded` says that there are NULLs besides."""

    origins: frozenset[Origin]
    padded: bool = False


def _origins(plan: Operator, path: Path, columns: tuple[Column, ...]) -> _Found | None:
    """Scans that have all values of these columns together, None if they are computed."""
    match plan:
        case Scan(fields=fields):
            physical = {column: name for name, column in fields}
            return _Found(frozenset({Origin(path, plan, tuple(physical[c] for c in columns))}))
        case UnionAll(inputs=inputs):
            return _all(_origins(one, (*path, i), columns) for i, one in enumerate(inputs))
        case Project(child=child, outputs=outputs):
            return _renamed(child, path, columns, dict(outputs))
        case Accumulate(child=child, state=state):
            return _renamed(child, path, columns, dict(state.keys))
        case Filter() | Net() | Negate() | Replicate() | Restrict() | Top():
            return _origins(plan.children[0], (*path, 0), columns)
        case Unnest(child=child) | Window(child=child) | Aggregate(child=child):
            return _of_child(child, path, 0, columns)
        case Join(left=left, right=right):
            return _of_child(left, path, 0, columns) or _of_child(right, path, 1, columns)
        case MatchJoin(left=left, right=right):
            found = _of_child(left, path, 0, columns)
            return found or _padded(_of_child(right, path, 1, columns))
        case Rematch(change=change, before=before, after=after):
            if set(columns) <= set(change.columns):
                return _all(_origins(plan.children[i], (*path, i), columns) for i in (0, 1))
            if set(columns) <= set(before.columns) == set(after.columns):
                sides = _all(_origins(plan.children[i], (*path, i), columns) for i in (2, 3))
                return _padded(sides)
            return None
        case _:
            return None


def _of_child(
    child: Operator, path: Path, place: int, columns: tuple[Column, ...]
) -> _Found | None:
    if not set(columns) <= set(child.columns):
        return None
    return _origins(child, (*path, place), columns)


def _renamed(
    child: Operator, path: Path, columns: tuple[Column, ...], names: Mapping[Column, Scalar]
) -> _Found | None:
    below = [scalar for column in columns if isinstance(scalar := names.get(column), Column)]
    return _origins(child, (*path, 0), tuple(below)) if len(below) == len(columns) else None


def _all(parts: Iterable[_Found | None]) -> _Found | None:
    origins: frozenset[Origin] = frozenset()
    padded = False
    for part in parts:
        if part is None:
            return None
        origins |= part.origins
        padded |= part.padded
    return _Found(origins, padded)


def _padded(found: _Found | None) -> _Found | None:
    return None if found is None else replace(found, padded=True)
