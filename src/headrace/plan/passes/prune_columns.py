"""prune_columns: every node carries only the columns that something above it reads.

Groups that occur twice, up to what their columns are called, keep what either place reads: so they
stay equal, and one relation serves both.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.scalar import Column, columns_of
from headrace.plan.operators import (
    Aggregate,
    Filter,
    FullJoin,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Replicate,
    Scan,
    Top,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from headrace.plan.rename import numbered

Needed = frozenset[Column]


def prune_columns(plan: Operator) -> Operator:
    """Return a plan with the same rows and output columns whose scans read used columns only."""
    pruning = _Pruning()
    while True:
        previous = dict(pruning.read)
        pruned = pruning.prune(plan, frozenset(plan.columns))
        if pruning.read == previous:
            return pruned


class _Pruning:
    """The columns read of each group, wherever it occurs: collected in rounds, to a fixed point."""

    def __init__(self) -> None:
        self.read: dict[Operator, frozenset[int]] = {}

    def _needed_columns(self, plan: Operator, needed: Needed) -> Needed:
        """Return the columns that some place reads of groups equal to these."""
        alike, columns = numbered(plan)
        here = frozenset(i for i, column in enumerate(columns) if column in needed)
        self.read[alike] = everywhere = self.read.get(alike, frozenset()) | here
        return frozenset(columns[i] for i in everywhere)

    def prune(self, plan: Operator, needed: Needed) -> Operator:
        """Return the plan with at least the needed columns, in their old order."""
        if isinstance(plan, (Aggregate, Window, Top)):
            needed = self._needed_columns(plan, needed)
        match plan:
            case Scan(fields=fields):
                # A scan of no column at all would have rows without values: it keeps its first.
                used = tuple(field for field in fields if field[1] in needed) or fields[:1]
                return replace(plan, fields=used)
            case Filter(child=child, condition=condition):
                return replace(plan, child=self.prune(child, needed | columns_of(condition)))
            case Project(child=child, outputs=outputs):
                used_outputs = (
                    tuple(output for output in outputs if output[0] in needed) or outputs[:1]
                )
                read = frozenset[Column]().union(
                    *(columns_of(scalar) for _, scalar in used_outputs)
                )
                return Project(self.prune(child, read), used_outputs)
            case Join() | FullJoin():
                left, right, condition = plan.left, plan.right, plan.condition
                if condition is not None:
                    needed |= columns_of(condition)
                return replace(plan, left=self.prune(left, needed), right=self.prune(right, needed))
            case OuterSemiAntiJoin(left=left, right=right, condition=condition):
                tested = frozenset[Column]() if condition is None else columns_of(condition)
                needed_right = needed if plan.kind == "left" else frozenset[Column]()
                return replace(
                    plan,
                    left=self.prune(left, needed | tested),
                    right=self._narrow(right, needed_right | tested),
                )
            case Aggregate(child=child, keys=keys, calls=calls):
                used_calls = tuple(call for call in calls if call.output in needed)
                if not keys:
                    used_calls = used_calls or calls[:1]
                read = frozenset[Column]().union(*(call.read for call in used_calls))
                return Aggregate(self.prune(child, read | frozenset(keys)), keys, used_calls)
            case Window(child=child, keys=keys, calls=calls):
                used_windows = tuple(call for call in calls if call.output in needed)
                if not used_windows:
                    return self.prune(child, needed)
                read = frozenset(keys).union(*(call.read for call in used_windows))
                return Window(self.prune(child, needed | read), keys, used_windows)
            case Top(child=child):
                return replace(plan, child=self.prune(child, needed | plan.read))
            case Replicate(child=child, times=times):
                return replace(plan, child=self.prune(child, needed | columns_of(times)))
            case Unnest(child=child, arguments=arguments, ordinality=number):
                read = needed.union(*map(columns_of, arguments))
                return replace(
                    plan,
                    child=self.prune(child, read),
                    ordinality=number if number in needed else None,
                )
            case Values(fields=fields, rows=rows):
                places = [i for i, column in enumerate(fields) if column in needed]
                cells = tuple(tuple(row[i] for i in places) for row in rows)
                return Values(tuple(fields[i] for i in places), cells)
            case UnionAll(inputs=inputs):
                columns = tuple(c for c in plan.columns if c in needed) or plan.columns[:1]
                return UnionAll(tuple(self._exactly(child, columns) for child in inputs))
        return plan.with_children(*(self.prune(c, frozenset(c.columns)) for c in plan.children))

    def _narrow(self, plan: Operator, needed: Needed) -> Operator:
        """Return the plan without columns that only filters of its own read.

        The side that rows are matched with is netted first, by all of its columns.
        """
        pruned = self.prune(plan, needed)
        if not isinstance(pruned, Filter) or needed.issuperset(pruned.columns):
            return pruned
        columns = tuple(column for column in pruned.columns if column in needed)
        return Project(pruned, tuple((c, c) for c in columns or pruned.columns[:1]))

    def _exactly(self, plan: Operator, columns: tuple[Column, ...]) -> Operator:
        pruned = self.prune(plan, frozenset(columns))
        if pruned.columns == columns:
            return pruned
        return Project(pruned, tuple((column, column) for column in columns))
