"""Which output columns of a plan are unique together.

A row of the plan is identified by the rows it was made from: `identity` is a set of columns that
tells them apart. Columns determine each other through keys, equalities and projections; a set of
output columns is a key if it determines the identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from headrace.plan.operators import Aggregate, Filter, Join, Operator, Project, Scan, UnionAll
from headrace.plan.scalar import Call, Column, Literal, Scalar

Columns = frozenset[Column]
Dependency = tuple[Columns, Columns]
Keys = Mapping[str, tuple[frozenset[str], ...]]
"""For each relation, sets of physical columns that are unique together and never NULL."""


def smallest_key(plan: Operator, keys: Keys) -> tuple[int, ...] | None:
    """Positions of output columns that are unique together, none of which can be left out.

    Empty if there is at most one row, None if no key is known. Later columns are left out first.
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
        case Join(left=left, right=right):
            a, b = _identity(left, keys), _identity(right, keys)
            return None if a is None or b is None else a | b
        case Aggregate(keys=group):
            return frozenset(group)
        case _:
            return None


def _scan_keys(scan: Scan, keys: Iterable[frozenset[str]]) -> list[Columns]:
    """The relation's keys as columns of the scan, those of which it reads every column."""
    read = dict(scan.fields)
    return [frozenset(read[physical] for physical in key) for key in keys if key <= read.keys()]


def _dependencies(plan: Operator, keys: Keys) -> Iterator[Dependency]:
    match plan:
        case Scan(relation=relation):
            for key in _scan_keys(plan, keys.get(relation, ())):
                yield key, frozenset(plan.columns)
        case Filter(condition=condition):
            yield from _equalities(condition)
        case Join(condition=Call() as condition):
            yield from _equalities(condition)
        case Project(outputs=outputs):
            for column, scalar in outputs:
                yield from _equal(column, scalar)
        case Aggregate(keys=group):
            yield frozenset(group), frozenset(plan.columns)
        case UnionAll():
            # What holds in one branch says nothing of the others, which have the same columns.
            return
    for child in plan.children:
        yield from _dependencies(child, keys)


def _equalities(condition: Scalar) -> Iterator[Dependency]:
    match condition:
        case Call(function="and", arguments=arguments):
            for argument in arguments:
                yield from _equalities(argument)
        case Call(function="=", arguments=(left, right)):
            if _same_values(left, right):
                yield from _equal(left, right)


def _same_values(left: Scalar, right: Scalar) -> bool:
    """Whether equal means the same value: 0.1 as numeric and as double precision are not."""
    both_text = {left.type.kind, right.type.kind} <= {"text", "character varying"}
    both_integer = left.type.is_integer and right.type.is_integer
    return left.type.kind == right.type.kind or both_text or both_integer


def _equal(left: Scalar, right: Scalar) -> Iterator[Dependency]:
    nothing: Columns = frozenset()
    match left, right:
        case Column(), Column():
            yield frozenset({left}), frozenset({right})
            yield frozenset({right}), frozenset({left})
        case Column(), Literal():
            yield nothing, frozenset({left})
        case Literal(), Column():
            yield nothing, frozenset({right})


def _closure(columns: Iterable[Column], dependencies: tuple[Dependency, ...]) -> Columns:
    """Every column that the given ones determine."""
    known = set(columns)
    growing = True
    while growing:
        growing = False
        for premise, conclusion in dependencies:
            if premise <= known and not conclusion <= known:
                known |= conclusion
                growing = True
    return frozenset(known)
