"""Restrictions of states to the rows that can contribute to a query over changes.

In a term of a delta only rows that join with the change matter. So every scan of a state may be
restricted to the keys that the change has, and what joins with that scan to the keys found there,
outward from the change:

    ΔL ⋈ O ⋈ C        O: o_orderkey among those of ΔL        C: c_custkey among those of that O

A key that is computed on the side of the change is computed there for each of its rows; on the side
that is restricted, the expression has to have an inverse (see `inverse_of`).

A restriction only takes away rows that would meet no partner, or whose results an operator above
drops. So it is enough that each scan is given at least the rows that it is restricted to: one input
may serve several scans, and restrictions may be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from headrace.algebra.scalar import Call, Column, Scalar, columns_of, substitute
from headrace.delta.origins import Inverse, Path, ScanOrigin, inverse_of, origins_of
from headrace.functions import can_raise, chain
from headrace.plan.conditions import EqualColumns, Pair, equal_pair
from headrace.plan.operators import (
    Accumulate,
    Aggregate,
    Filter,
    Join,
    Merge,
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
    Version,
    Window,
)
from headrace.plan.passes.factor_conditions import disjuncts
from headrace.plan.passes.push_filters import conjuncts

GIVEN = ("change", "stale")
"""Versions that are there before anything is restricted."""


@dataclass(frozen=True)
class Restriction:
    """Of the scan at `path` only rows matter whose `columns` are among the keys of the origins.

    `null_safe` says that NULL equals NULL, and `padded` that there is a key of NULLs besides.
    `steps` is the distance of this path from the change: no scan needs a restriction with more than
    its least number of steps.
    """

    path: Path
    scan: Scan
    columns: tuple[str, ...]
    origins: tuple[ScanOrigin, ...]
    null_safe: bool
    padded: bool
    steps: int = 1


@dataclass(frozen=True)
class Reduction:
    """The restrictions of a plan, each of which is enough for its scan.

    `whole` are inputs, a relation and a version each, with a scan that is not restricted.
    `conditions` has, for some scans, conditions that are true for all rows that matter; each reads
    one column.
    """

    restrictions: tuple[Restriction, ...]
    whole: frozenset[tuple[str, Version]]
    conditions: tuple[tuple[Path, tuple[Scalar, ...]], ...] = ()


def reduction(plan: Operator) -> Reduction:
    """Return all paths from the change to the scans of states that it reaches."""
    restrictions_by_path: dict[Path, list[Restriction]] = {}
    scans: dict[Path, Scan] = {}
    steps_by_path: dict[Path, int] = {}
    for path, scan, demands in _demanded(plan, (), (), risky=False):
        scans[path] = scan
        if scan.version in GIVEN:
            steps_by_path[path] = 0
        else:
            restrictions_by_path[path] = [_restriction(path, scan, demand) for demand in demands]
    while reached := {
        path: 1 + max((steps_by_path[origin.path] for origin in restriction.origins), default=0)
        for path, restrictions in restrictions_by_path.items()
        if path not in steps_by_path
        for restriction in restrictions
        if all(origin.path in steps_by_path for origin in restriction.origins)
    }:
        steps_by_path |= reached
    restrictions = (
        replace(
            restriction,
            steps=1
            + max((steps_by_path[origin.path] for origin in restriction.origins), default=0),
        )
        for restrictions in restrictions_by_path.values()
        for restriction in restrictions
        if all(origin.path in steps_by_path for origin in restriction.origins)
    )
    whole = {
        (scan.relation, scan.version) for path, scan in scans.items() if path not in steps_by_path
    }
    return Reduction(tuple(restrictions), frozenset(whole), tuple(_conditions(plan, (), ())))


def _conditions(
    plan: Operator, path: Path, above: tuple[Scalar, ...]
) -> Iterator[tuple[Path, tuple[Scalar, ...]]]:
    """Return scans with the conditions of filters and inner joins above them."""
    match plan:
        case Scan():
            alone = tuple(implied for condition in above for implied in _implied(condition))
            if alone:
                yield path, alone
        case Join(condition=condition):
            tested = above if condition is None else (*above, *conjuncts(condition))
            implied = [implied_term for term in tested for implied_term in _implied(term)]
            for place, child in enumerate(plan.children):
                own = frozenset(child.columns)
                below = tuple(
                    implied_term for implied_term in implied if columns_of(implied_term) <= own
                )
                yield from _conditions(child, (*path, place), below)
        case Filter(child=child, condition=condition):
            yield from _conditions(child, (*path, 0), (*above, *conjuncts(condition)))
        case Project(child=child, outputs=outputs):
            values = dict(outputs)
            below = tuple(substitute(c, lambda column: values[column]) for c in above)
            yield from _conditions(child, (*path, 0), below)
        case Net(child=child):
            yield from _conditions(child, (*path, 0), above)
        case _:
            for place, child in enumerate(plan.children):
                yield from _conditions(child, (*path, place), ())


def _implied(condition: Scalar) -> Iterator[Scalar]:
    """Yield conditions on one column each, true wherever `condition` is; none of them can raise.

    Alternatives that all have a condition on a column imply one of these conditions:

        (a = 1 ∧ b = x) ∨ (a = 2 ∧ b < y)    a = 1 ∨ a = 2
    """
    if len(columns_of(condition)) == 1 and not can_raise(condition):
        yield condition
        return
    branches = [conjuncts(branch) for branch in disjuncts(condition)]
    for column in sorted(columns_of(condition), key=lambda column: column.id):
        terms_by_branch = [
            [term for term in branch if columns_of(term) == {column} and not can_raise(term)]
            for branch in branches
        ]
        if all(terms_by_branch):
            yield chain("or", [chain("and", terms) for terms in terms_by_branch])


@dataclass(frozen=True)
class _Demand:
    """Only rows of a node whose `columns` are among the keys of the origins matter."""

    columns: tuple[Column, ...]
    origins: frozenset[ScanOrigin]
    null_safe: bool
    padded: bool

    def mapped(self, to: Mapping[Column, Column]) -> Iterator[_Demand]:
        """Return the demand on other names of its columns, without columns that have none."""
        return self.inverted({column: Inverse(name) for column, name in to.items()})

    def inverted(self, to: Mapping[Column, Inverse]) -> Iterator[_Demand]:
        """Return the demand on what its columns are computed from.

        Columns without it are left out.
        """
        inverses = {i: to[column] for i, column in enumerate(self.columns) if column in to}
        if inverses:
            origins = frozenset(
                replace(origin, values=tuple(f.of(origin.values[i]) for i, f in inverses.items()))
                for origin in self.origins
            )
            columns = tuple(inverse.column for inverse in inverses.values())
            yield from replace(self, columns=columns, origins=origins).once_each()

    def once_each(self) -> Iterator[_Demand]:
        """Yield demands in which no column is twice.

        A column that is to equal several others is demanded once for each of them:

            m.tid = t.id ∧ m.tid = t.y      m.tid among all t.id, and m.tid among all t.y
        """
        if len(set(self.columns)) == len(self.columns):
            yield self
            return
        first = {column: place for place, column in reversed(tuple(enumerate(self.columns)))}
        places = set(first.values())
        for chosen in (places, set(range(len(self.columns))) - places):
            part = tuple(column for i, column in enumerate(self.columns) if i in chosen)
            origins = frozenset(
                replace(origin, values=tuple(v for i, v in enumerate(origin.values) if i in chosen))
                for origin in self.origins
            )
            yield from replace(self, columns=part, origins=origins).once_each()

    def on(self, columns: Iterable[Column]) -> Iterator[_Demand]:
        """Return the part of the demand that is about these columns."""
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
        left_type, right_type = (column.type for column in self.columns)
        if left_type.is_integer and right_type.is_integer:
            return True
        if not (left_type.row.stored_equality and right_type.row.stored_equality):
            return False
        return left_type.kind == right_type.kind or (left_type.is_text and right_type.is_text)


def _restriction(path: Path, scan: Scan, demand: _Demand) -> Restriction:
    physical = {column: name for name, column in scan.fields}
    origins = tuple(sorted(demand.origins, key=lambda origin: origin.path))
    columns = tuple(physical[column] for column in demand.columns)
    return Restriction(path, scan, columns, origins, demand.null_safe, demand.padded)


def _demanded(
    plan: Operator, path: Path, demands: Demands, *, risky: bool
) -> Iterator[tuple[Path, Scan, Demands]]:
    """Return every scan with the demands on it, given those on the plan's own rows.

    `risky` says that some expression above can raise. It must not see a row that only seems to
    have no match: where the preserved side may have rows that do not matter, its matches stay.
    """
    if isinstance(plan, Scan):
        yield path, plan, demands
        return
    risky = risky or any(map(can_raise, plan.scalars))
    for place, child in enumerate(plan.children):
        passed = _passed_on(plan, path, place, demands)
        if risky and place == 1 and isinstance(plan, OuterSemiAntiJoin) and plan.kind != "semi":
            passed = passed if _has_given(plan.left) else ()
        yield from _demanded(child, (*path, place), passed, risky=risky)


def _has_given(plan: Operator) -> bool:
    if isinstance(plan, Scan):
        return plan.version in GIVEN
    return any(map(_has_given, plan.children))


def _passed_on(plan: Operator, path: Path, place: int, demands: Demands) -> Demands:
    """Return the demands of a node on one of its children; a node not named here has none."""
    match plan:
        case Filter() | Net() | Negate() | Replicate() | UnionAll():
            return demands
        case Project(outputs=outputs):
            inverses = {c: inverse for c, value in outputs if (inverse := inverse_of(value))}
            plain = {c: inverse for c, inverse in inverses.items() if inverse.is_plain}
            return tuple(
                child_demand
                for demand in demands
                for child_demand in demand.inverted(plain if demand.null_safe else inverses)
            )
        case Unnest(child=child):
            return tuple(
                child_demand for demand in demands for child_demand in demand.on(child.columns)
            )
        case Window(keys=keys) | Top(keys=keys) | Aggregate(keys=keys):
            # Groups and partitions are taken away whole.
            return tuple(child_demand for demand in demands for child_demand in demand.on(keys))
        case Accumulate(state=state):
            return tuple(
                child_demand
                for demand in demands
                for child_demand in demand.mapped(dict(state.keys))
            )
        case Join(left=left, right=right):
            children = (left, right)
            equal = tuple(_equal(plan.condition, left, right))
            mine, other_place = children[place], 1 - place
            own = _own(demands, mine, equal, place)
            pairs = _through_equals(children[other_place], equal, place)
            return own + _among(children[other_place], (*path, other_place), pairs, place)
        case OuterSemiAntiJoin(left=left, right=right):
            equal = tuple(_equal(plan.condition, left, right))
            if place == 1:
                # Only matches of rows that the preserved side needs matter.
                own = _own(_of(demands, left), right, equal, 1)
                return own + _among(left, (*path, 0), equal, 1)
            own = tuple(
                child_demand for demand in demands for child_demand in demand.on(left.columns)
            )
            return own + (_among(right, (*path, 1), equal, 0) if plan.kind == "semi" else ())
        case OuterSemiAntiJoinDelta(change=change, touched=touched, after=after):
            equal = tuple(_equal(plan.condition, touched, after))
            touched_demands = _of(demands, touched)
            if place < 2:
                return touched_demands
            rows = UnionAll((change, touched))
            return _own(touched_demands, after, equal, 1) + _among(rows, path, equal, 1)
        case Restrict(touched=touched, keys=keys) if place == 0:
            pairs = tuple(_Equal(pair, null_safe=True) for pair in keys)
            return demands + _among(touched, (*path, 1), pairs, 0)
        case Merge(change=change, state=state) if place == 0:
            pairs = tuple(_Equal(pair, null_safe=True) for pair in state.keys)
            return _among(change, (*path, 1), pairs, 0)
        case _:
            return ()


def _of(demands: Demands, side: Operator) -> Demands:
    """Return the demands that are about columns of a side."""
    return tuple(side_demand for demand in demands for side_demand in demand.on(side.columns))


def _own(demands: Demands, mine: Operator, equal: tuple[_Equal, ...], place: int) -> Demands:
    """Return demands from above on a side of a join: on its columns, or on those equal to them."""
    names = {column: column for column in mine.columns}
    for pair in equal:
        if not pair.null_safe and pair.as_stored:
            names.setdefault(pair.columns[1 - place], pair.columns[place])
    return tuple(side_demand for demand in demands for side_demand in demand.mapped(names))


def _among(other: Operator, path: Path, equal: tuple[_Equal, ...], place: int) -> Demands:
    """Return demands that rows of a side have keys of the `other` side, which stands at `path`."""
    demands: list[_Demand] = []
    for null_safe in (False, True):
        pairs = [pair for pair in equal if pair.null_safe == null_safe and pair.as_stored]
        for together in _by_scans(other, path, pairs, place):
            value_origins = origins_of(
                other, path, tuple(pair.columns[1 - place] for pair in together)
            )
            if value_origins is not None:
                columns = tuple(pair.columns[place] for pair in together)
                demand = _Demand(columns, value_origins.origins, null_safe, value_origins.padded)
                demands.extend(demand.once_each())
    return tuple(demands)


def _through_equals(other: Operator, equal: tuple[_Equal, ...], place: int) -> tuple[_Equal, ...]:
    """Return the pairs, and those with columns that the other side makes equal to its own.

    (ΔL ⋈[l = o] O) ⋈[l = c] C        C: c among l of ΔL, or among o of the rows of O found
    """
    inside = EqualColumns(_equated(other))
    return equal + tuple(
        _Equal((mate, pair.columns[1]) if place else (pair.columns[0], mate), null_safe=False)
        for pair in equal
        if not pair.null_safe
        for mate in inside.others(pair.columns[1 - place])
    )


def _equated(plan: Operator) -> Iterator[Pair]:
    """Return the columns that inner joins and filters make equal in all rows of a plan."""
    if isinstance(plan, Join | Filter):
        for scalar in plan.scalars:
            for term in conjuncts(scalar):
                if (pair := equal_pair(term)) is not None:
                    yield pair
        for child in plan.children:
            yield from _equated(child)


def _by_scans(
    other: Operator, path: Path, pairs: list[_Equal], place: int
) -> Iterable[list[_Equal]]:
    """Return the pairs, those together whose values come from the same scans."""
    together: dict[frozenset[Path], list[_Equal]] = {}
    for pair in pairs:
        value_origins = origins_of(other, path, (pair.columns[1 - place],))
        if value_origins is not None:
            scans = frozenset(origin.path for origin in value_origins.origins)
            together.setdefault(scans, []).append(pair)
    return together.values()


def _equal(condition: Scalar | None, left: Operator, right: Operator) -> Iterator[_Equal]:
    """Return the columns of the sides that a condition equates."""
    for term in () if condition is None else conjuncts(condition):
        if not isinstance(term, Call) or term.function not in ("=", "is not distinct from"):
            continue
        first, second = term.arguments
        if not isinstance(first, Column) or not isinstance(second, Column):
            continue
        null_safe = term.function != "="
        if first in left.columns and second in right.columns:
            yield _Equal((first, second), null_safe)
        elif second in left.columns and first in right.columns:
            yield _Equal((second, first), null_safe)
