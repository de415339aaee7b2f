"""merge_groupings: several groupings of the same rows are one, by the set of keys and the keys.

    γ[a, b; f](R) + γ[a; f](R)  =  γ[s, a, b; f](R × {(1, a, b), (2, a, NULL)})

So are the sets of GROUP BY ROLLUP, CUBE and GROUPING SETS: their rows are joined once, and all
groups are kept as one relation. The set without keys has a row even where there are no rows, and
stays. So does every set of an aggregate that only the rows of a group can tell, or may have to:
these are found by their keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.functions import AGGREGATE_BY_NAME, call
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Operator,
    Project,
    UnionAll,
    Unnest,
)
from headrace.plan.rename import numbered, renamed
from headrace.plan.scalar import Column, Literal, Scalar, substitute
from headrace.types import INTEGER


def merge_groupings(plan: Operator) -> Operator:
    """The plan with groupings of the same rows merged, where changes can be added to them."""
    plan = plan.with_children(*map(merge_groupings, plan.children))
    if not isinstance(plan, UnionAll):
        return plan
    groupings = [_grouping(branch) for branch in plan.inputs]
    alike: dict[tuple[Operator, tuple[AggregateCall, ...]], list[_Grouping]] = {}
    for grouping in groupings:
        if grouping is not None:
            alike.setdefault((grouping.rows, grouping.calls), []).append(grouping)
    result: list[Operator] = []
    for grouping, branch in zip(groupings, plan.inputs, strict=True):
        several = [] if grouping is None else alike[grouping.rows, grouping.calls]
        if len(several) < 2:
            result.append(branch)
        elif several[0] is grouping:
            result.append(_together(several))
    return plan if len(result) == len(plan.inputs) else _union(result)


def _union(branches: list[Operator]) -> Operator:
    return UnionAll(tuple(branches)) if len(branches) > 1 else branches[0]


@dataclass(frozen=True)
class _Grouping:
    """A branch: `outputs` over `aggregate`; its rows and calls with their columns numbered."""

    aggregate: Aggregate
    outputs: tuple[tuple[Column, Scalar], ...]
    rows: Operator
    calls: tuple[AggregateCall, ...]
    columns: tuple[Column, ...]


def _grouping(plan: Operator) -> _Grouping | None:
    outputs: tuple[tuple[Column, Scalar], ...] = tuple((column, column) for column in plan.columns)
    if isinstance(plan, Project):
        outputs, plan = plan.outputs, plan.child
    if not isinstance(plan, Aggregate) or not plan.keys or not all(map(_is_summed, plan.calls)):
        return None
    rows, columns = numbered(plan.child)
    numbers = {column: Column(f"x{i}", column.type) for i, column in enumerate(columns)}
    # Results may be called anything, so they are not part of what is compared.
    calls = tuple(
        replace(renamed(one, numbers), output=Column(f"y{i}", one.output.type))
        for i, one in enumerate(plan.calls)
    )
    return _Grouping(plan, outputs, rows, calls, columns)


def _is_summed(one: AggregateCall) -> bool:
    """Whether changes can always be added to the result, from sums alone."""
    if one.distinct or one.only is not None:
        return False
    states = AGGREGATE_BY_NAME[one.function].states(one.argument, *one.further)
    return states is not None and all(
        state.kept == "sum" and not state.term.type.is_float for state in states
    )


def _together(groupings: list[_Grouping]) -> Operator:
    first = groupings[0]
    rows = first.aggregate.child
    sets: list[tuple[Column, ...]] = []
    for grouping in groupings:
        names = dict(zip(grouping.columns, first.columns, strict=True))
        sets.append(tuple(names[key] for key in grouping.aggregate.keys))
    keys = tuple(dict.fromkeys(key for keys in sets for key in keys))
    # Keys of all sets stay as they are, so that conditions on them reach the rows.
    common = frozenset(keys).intersection(*sets)
    others = tuple(key for key in keys if key not in common)
    number = Column(f"set_of_{keys[0].id}", INTEGER)
    grouped = {key: key if key in common else Column(f"{key.id}_of_set", key.type) for key in keys}
    cells: list[Scalar] = []
    for place, own in enumerate(sets, 1):
        cells.append(Literal(place, INTEGER))
        cells += (key if key in own else Literal(None, key.type) for key in others)
    listed = Unnest(rows, "rows", tuple(cells), (number, *(grouped[key] for key in others)))
    groups = Aggregate(listed, (number, *grouped.values()), first.aggregate.calls)
    values: list[list[Scalar]] = []
    for grouping in groupings:
        names = dict(zip(grouping.columns, first.columns, strict=True))
        over = {key: grouped[names[key]] for key in grouping.aggregate.keys}
        pairs = zip(grouping.aggregate.calls, first.aggregate.calls, strict=True)
        over |= {own.output: one.output for own, one in pairs}
        values.append([substitute(s, over.__getitem__) for _, s in grouping.outputs])
    outputs = tuple(
        (column, _by_set(number, scalars, sets, keys, grouped))
        for (column, _), scalars in zip(first.outputs, zip(*values, strict=True), strict=True)
    )
    return Project(groups, outputs)


def _by_set(
    number: Column,
    scalars: tuple[Scalar, ...],
    sets: list[tuple[Column, ...]],
    keys: tuple[Column, ...],
    grouped: dict[Column, Column],
) -> Scalar:
    """What each set shows, chosen by its number, if they differ.

    A key is NULL in sets that lack it, so it can be shown for all.
    """
    if all(scalar == scalars[0] for scalar in scalars[1:]):
        return scalars[0]
    nothing = Literal(None, scalars[0].type)
    for key in keys:
        shown = [grouped[key] if key in own else nothing for own in sets]
        if list(scalars) == shown:
            return grouped[key]
    branches = [
        part
        for place, scalar in enumerate(scalars[:-1], 1)
        for part in (call("=", number, Literal(place, INTEGER)), scalar)
    ]
    return call("case", *branches, scalars[-1])
