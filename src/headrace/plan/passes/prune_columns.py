"""prune_columns: every node carries only the columns that something above it reads."""

from __future__ import annotations

from dataclasses import replace

from headrace.plan.operators import Aggregate, Filter, Join, Operator, Project, Scan, UnionAll
from headrace.plan.scalar import Column, columns_of

Wanted = frozenset[Column]


def prune_columns(plan: Operator) -> Operator:
    """The same rows and output columns, with scans reading what is used and no more."""
    return _prune(plan, frozenset(plan.columns))


def _prune(plan: Operator, wanted: Wanted) -> Operator:
    """The plan with at least the wanted columns, in their old order."""
    match plan:
        case Scan(fields=fields):
            # A scan of no column at all would have rows without values: it keeps its first.
            used = tuple(field for field in fields if field[1] in wanted) or fields[:1]
            return replace(plan, fields=used)
        case Filter(child=child, condition=condition):
            return replace(plan, child=_prune(child, wanted | columns_of(condition)))
        case Project(child=child, outputs=outputs):
            kept = tuple(output for output in outputs if output[0] in wanted) or outputs[:1]
            read = frozenset[Column]().union(*(columns_of(scalar) for _, scalar in kept))
            return Project(_prune(child, read), kept)
        case Join(left=left, right=right, condition=condition):
            if condition is not None:
                wanted |= columns_of(condition)
            return replace(plan, left=_prune(left, wanted), right=_prune(right, wanted))
        case Aggregate(child=child, keys=keys, calls=calls):
            used_calls = tuple(call for call in calls if call.output in wanted)
            if not keys:
                used_calls = used_calls or calls[:1]
            read = frozenset(call.argument for call in used_calls if call.argument is not None)
            return Aggregate(_prune(child, read | frozenset(keys)), keys, used_calls)
        case UnionAll(inputs=inputs):
            columns = tuple(c for c in plan.columns if c in wanted) or plan.columns[:1]
            return UnionAll(tuple(_exactly(child, columns) for child in inputs))
    return plan.with_children(*(_prune(c, frozenset(c.columns)) for c in plan.children))


def _exactly(plan: Operator, columns: tuple[Column, ...]) -> Operator:
    pruned = _prune(plan, frozenset(columns))
    if pruned.columns == columns:
        return pruned
    return Project(pruned, tuple((column, column) for column in columns))
