"""Which output columns of a plan are unique together.

A row of the plan is identified by the rows it was made from: `identity` is a set of columns that
identifies them. Columns determine each other through keys, equalities and projections; a set of
output columns is a key if it determines the identity.

A left join adds rows in which the columns of one side are all NULL. What the columns of that side
say of each other holds with such rows only if NULLs imply NULLs: a key that is never NULL and
columns that are equal do, the keys of groups (one of which may be NULL) and constants do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from headrace.algebra.scalar import Call, Column, Literal, Outer, Scalar
from headrace.functions.tables import TABLE_FUNCTION_BY_NAME
from headrace.plan.operators import (
    Aggregate,
    Filter,
    FullJoin,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Recursive,
    Scan,
    Top,
    UnionAll,
    Unnest,
    Values,
    Window,
)

Columns = frozenset[Column]
Keys = Mapping[str, tuple[frozenset[str], ...]]
"""For each relation, sets of physical columns that are unique together and never NULL."""


@dataclass(frozen=True)
class FunctionalDependency:
    """Rows that agree on `premise` agree on `conclusion`; `padded` says also with rows of NULLs."""

    premise: Columns
    conclusion: Columns
    padded: bool = False


def are_unique(columns: Iterable[Column], plan: Operator, keys: Keys) -> bool:
    """Return whether no two rows of the plan agree on these of its columns."""
    identity = _identity(plan, keys)
    if identity is None:
        return False
    return identity <= _closure(columns, tuple(_dependencies(plan, keys)))


def smallest_key(plan: Operator, keys: Keys) -> tuple[int, ...] | None:
    """Return the positions of a minimal set of output columns that are unique together.

    Return no positions if there is at most one row, and None if no key is known. Later columns are
    left out first.
    """
    identity = _identity(plan, keys)
    if identity is None:
        return None
    dependencies = tuple(_dependencies(plan, keys))
    chosen = list(range(len(plan.columns)))
    if not identity <= _closure((plan.columns[i] for i in chosen), dependencies):
        return None
    for position in reversed(range(len(plan.columns))):
        fewer = [i for i in chosen if i != position]
        if identity <= _closure((plan.columns[i] for i in fewer), dependencies):
            chosen = fewer
    return tuple(chosen)


def _identity(plan: Operator, keys: Keys) -> Columns | None:
    match plan:
        case Scan(relation=relation):
            return frozenset(plan.columns) if _scan_keys(plan, keys.get(relation, ())) else None
        case Filter(child=child) | Project(child=child):
            return _identity(child, keys)
        case Window(child=child):
            inside = _identity(child, keys)
            numbers = row_numbers(plan)
            return frozenset({*plan.keys, numbers[0]}) if inside is None and numbers else inside
        case Top(keys=group, child=child):
            return frozenset(group) if is_single(plan) else _identity(child, keys)
        case OuterSemiAntiJoin(left=left, kind="semi" | "anti"):
            return _identity(left, keys)
        case Join(left=left, right=right) | OuterSemiAntiJoin(left=left, right=right):
            a, b = _identity(left, keys), _identity(right, keys)
            return None if a is None or b is None else a | b
        case FullJoin(left=left, right=right):
            # Rows of both sides may be padded: one side must distinguish its own rows from those.
            a, b = _identity(left, keys), _identity(right, keys)
            has_present_side = _is_present(left, keys) or _is_present(right, keys)
            return None if a is None or b is None or not has_present_side else a | b
        case Aggregate(keys=group):
            return frozenset(group)
        case Unnest(child=child):
            return _unnest_identity(plan, _identity(child, keys))
        case Recursive(once=True):
            return frozenset(plan.columns)
        case Values(rows=rows):
            return frozenset() if len(rows) == 1 else None
        case _:
            return None


def row_numbers(plan: Window) -> list[Column]:
    """Return the columns that number the rows of a partition."""
    return [call.output for call in plan.calls if call.function == "row_number"]


def is_single(plan: Top) -> bool:
    """Return whether at most one row of each group is taken."""
    return plan.limit == 1 and not plan.with_ties


def _is_present(plan: Operator, keys: Keys) -> bool:
    """Return whether every row has a column of its identity that is not NULL."""
    match plan:
        case Scan(relation=relation):
            return bool(_scan_keys(plan, keys.get(relation, ())))
        case Filter(child=child) | Project(child=child) | Window(child=child):
            return _is_present(child, keys)
        case OuterSemiAntiJoin(left=left):
            return _is_present(left, keys)
        case Join(left=left, right=right):
            return _is_present(left, keys) or _is_present(right, keys)
        case _:
            return False


def _unnest_identity(plan: Unnest, outside: Columns | None) -> Columns | None:
    """Return `outside` and the number of the function's row, or the row if none repeats."""
    if outside is None:
        return None
    if plan.ordinality is not None:
        return outside | {plan.ordinality}
    return outside | set(plan.outputs) if TABLE_FUNCTION_BY_NAME[plan.function].unique else None


def _scan_keys(scan: Scan, keys: Iterable[frozenset[str]]) -> list[Columns]:
    """Return the keys of which the scan reads every column, as columns of the scan."""
    read = dict(scan.fields)
    return [frozenset(read[physical] for physical in key) for key in keys if key <= read.keys()]


def _dependencies(plan: Operator, keys: Keys) -> Iterator[FunctionalDependency]:
    match plan:
        case Scan(relation=relation):
            for key in _scan_keys(plan, keys.get(relation, ())):
                yield FunctionalDependency(key, frozenset(plan.columns), padded=True)
        case Filter(condition=condition):
            yield from _equalities(condition)
        case Join(condition=Call() as condition):
            yield from _equalities(condition)
        case OuterSemiAntiJoin():
            yield from _match_dependencies(plan, keys)
            return
        case FullJoin():
            for child in plan.children:
                yield from _padded(child, keys)
            return
        case Project(outputs=outputs):
            for column, scalar in outputs:
                yield from _equal(column, scalar)
        case Aggregate(keys=group):
            yield FunctionalDependency(frozenset(group), frozenset(plan.columns))
        case Top(keys=group) if is_single(plan):
            yield FunctionalDependency(frozenset(group), frozenset(plan.columns))
        case Window(keys=group):
            for number in row_numbers(plan):
                yield FunctionalDependency(frozenset({*group, number}), frozenset(plan.columns))
        case Values(rows=rows) if len(rows) == 1:
            yield FunctionalDependency(frozenset(), frozenset(plan.columns))
        case UnionAll() | Recursive():
            # A dependency of one branch need not hold in the others, which have the same columns.
            return
    for child in plan.children:
        yield from _dependencies(child, keys)


def _match_dependencies(join: OuterSemiAntiJoin, keys: Keys) -> Iterator[FunctionalDependency]:
    yield from _dependencies(join.left, keys)
    if join.kind != "left":
        return
    yield from _padded(join.right, keys)
    identity = _identity(join.left, keys)
    if identity is None or join.condition is None:
        return
    # A row has one value for what its matches equal, and a row without a match has none.
    outside = frozenset(join.left.columns)
    for equality in _equalities(join.condition):
        if equality.premise <= outside:
            yield FunctionalDependency(identity, equality.conclusion)


def _padded(plan: Operator, keys: Keys) -> Iterator[FunctionalDependency]:
    """Return the dependencies that still hold when rows of NULLs join those of the plan."""
    return (each for each in _dependencies(plan, keys) if each.padded)


def _equalities(condition: Scalar) -> Iterator[FunctionalDependency]:
    match condition:
        case Call(function="and", arguments=arguments):
            for argument in arguments:
                yield from _equalities(argument)
        case Call(function="=" | "is not distinct from", arguments=(left, right)):
            if _same_values(left, right):
                yield from _equal(left, right)


def _same_values(left: Scalar, right: Scalar) -> bool:
    """Return whether equal means the same value: 0.1 as numeric and as double precision are not."""
    both_text = {left.type.kind, right.type.kind} <= {"text", "character varying"}
    both_integer = left.type.is_integer and right.type.is_integer
    return left.type.kind == right.type.kind or both_text or both_integer


def _equal(left: Scalar, right: Scalar) -> Iterator[FunctionalDependency]:
    nothing: Columns = frozenset()
    match left, right:
        case Column(), Column():
            yield FunctionalDependency(frozenset({left}), frozenset({right}), padded=True)
            yield FunctionalDependency(frozenset({right}), frozenset({left}), padded=True)
        # Inside of a subquery, a value of the enclosing row is as good as a constant.
        case Column(), Literal() | Outer():
            yield FunctionalDependency(nothing, frozenset({left}))
        case Literal() | Outer(), Column():
            yield FunctionalDependency(nothing, frozenset({right}))


def _closure(columns: Iterable[Column], dependencies: tuple[FunctionalDependency, ...]) -> Columns:
    """Return every column that `columns` determine."""
    determined = set(columns)
    growing = True
    while growing:
        growing = False
        for each in dependencies:
            if each.premise <= determined and not each.conclusion <= determined:
                determined |= each.conclusion
                growing = True
    return frozenset(determined)
