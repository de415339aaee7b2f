"""merge_aggregates: single rows that are aggregated from the same rows are one.

    γ[f(x)](σ[a](R)) × γ[g(y)](σ[b](R))  =  γ[f(x where a), g(y where b)](σ[a ∨ b](R))

So are scalar subqueries that summarise the same tables under different conditions: they are kept
as one row, and their rows are read once. `x where a` is a CASE without ELSE, which the aggregate
ignores; conditions that can raise, and DISTINCT, are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.functions import AGGREGATE_BY_NAME, call, can_raise, chain
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Operator,
    Project,
)
from headrace.plan.passes.push_filters import conjuncts
from headrace.plan.passes.repeated_groups import Conditions, alternatives
from headrace.plan.rename import numbered, renamed
from headrace.types import BIGINT

ONE = Literal(1, BIGINT)
Outputs = tuple[tuple[Column, Scalar], ...]


def merge_aggregates(plan: Operator) -> Operator:
    """Return the plan with neighbouring aggregates of the same rows merged."""
    if isinstance(plan, Join):
        leaves, conditions = _flattened(plan)
        merged = _merged(leaves)
        if len(merged) < len(leaves):
            return merge_aggregates(_joined(merged, conditions, plan.columns))
    return plan.with_children(*map(merge_aggregates, plan.children))


def _flattened(plan: Operator) -> tuple[list[Operator], list[Scalar]]:
    """Return the joined plans, through joins and the filters between them, and all conditions."""
    match plan:
        case Join(left=left, right=right, condition=condition):
            leaves, conditions = _flattened(left)
            others, more = _flattened(right)
            own = [] if condition is None else [condition]
            return [*leaves, *others], [*conditions, *more, *own]
        case Filter(child=Join() | Filter() as child, condition=condition):
            leaves, conditions = _flattened(child)
            if len(leaves) > 1:
                return leaves, [*conditions, condition]
    return [plan], []


def _joined(
    leaves: list[Operator], conditions: list[Scalar], columns: tuple[Column, ...]
) -> Operator:
    joined = leaves[0]
    for leaf in leaves[1:]:
        joined = Join(joined, leaf)
    if conditions:
        joined = Filter(joined, chain("and", conditions))
    return Project(joined, tuple((column, column) for column in columns))


@dataclass(frozen=True)
class _Single:
    """One row: `outputs` over `calls` of `arguments`, of the rows that pass the conditions."""

    rows: Operator
    conditions: Conditions
    arguments: dict[Column, Scalar]
    calls: tuple[AggregateCall, ...]
    outputs: Outputs

    def over(self, rows: Operator, names: dict[Column, Column]) -> _Single:
        """Return the single over another plan with equal rows."""
        return replace(
            self,
            rows=rows,
            conditions=tuple(renamed(condition, names) for condition in self.conditions),
            arguments={c: renamed(scalar, names) for c, scalar in self.arguments.items()},
        )


def _merged(leaves: list[Operator]) -> list[Operator]:
    """Return the leaves, with singles over equal rows put into the first of them."""
    alike: dict[Operator, list[int]] = {}
    singles: dict[int, tuple[_Single, tuple[Column, ...]]] = {}
    for place, leaf in enumerate(leaves):
        single = _single(leaf)
        if single is not None:
            rows, columns = numbered(single.rows)
            singles[place] = single, columns
            alike.setdefault(rows, []).append(place)
    result: dict[int, Operator] = dict(enumerate(leaves))
    for places in alike.values():
        if len(places) < 2:
            continue
        first, columns = singles[places[0]]
        several = [first]
        for place in places[1:]:
            single, others = singles[place]
            several.append(single.over(first.rows, dict(zip(others, columns, strict=True))))
            del result[place]
        result[places[0]] = _together(several)
    return list(result.values())


def _single(plan: Operator) -> _Single | None:
    """Return the plan as a single row that can be merged with others."""
    outputs: Outputs = tuple((column, column) for column in plan.columns)
    if isinstance(plan, Project):
        outputs, plan = plan.outputs, plan.child
    if not isinstance(plan, Aggregate) or plan.keys or not all(map(_ignores_nulls, plan.calls)):
        return None
    rows = plan.child
    arguments: dict[Column, Scalar] = {column: column for column in rows.columns}
    if isinstance(rows, Project):
        arguments, rows = dict(rows.outputs), rows.child
    conditions: Conditions = ()
    if isinstance(rows, Filter):
        conditions, rows = conjuncts(rows.condition), rows.child
    if any(map(can_raise, conditions)):
        return None
    return _Single(rows, conditions, arguments, plan.calls, outputs)


def _ignores_nulls(one: AggregateCall) -> bool:
    plain = not one.distinct and not one.order and one.only is None and not one.further
    return plain and AGGREGATE_BY_NAME[one.function].needed == 1


def _together(singles: list[_Single]) -> Operator:
    """Return one row of all singles, which are over the same rows."""
    common = [c for c in singles[0].conditions if all(c in single.conditions for single in singles)]
    arguments: dict[Scalar, Column] = {}
    calls: list[AggregateCall] = []
    for single in singles:
        own = [condition for condition in single.conditions if condition not in common]
        for aggregate_call in single.calls:
            scalar: Scalar | None = (
                None
                if aggregate_call.argument is None
                else single.arguments[aggregate_call.argument]
            )
            if own:
                value = ONE if scalar is None else scalar
                nothing = Literal(None, value.type)
                scalar = call("case", chain("and", own), value, nothing)
            column = None
            if scalar is not None:
                new = Column(f"{aggregate_call.output.id}_argument", scalar.type)
                column = arguments.setdefault(scalar, new)
            calls.append(replace(aggregate_call, argument=column))
    below = alternatives(tuple(single.conditions for single in singles))
    if below is None:
        # Too long: each call has its own conditions, and only the common ones go below.
        below = tuple(common)
    rows = singles[0].rows
    if below:
        rows = Filter(rows, chain("and", below))
    if arguments:
        rows = Project(rows, tuple((column, scalar) for scalar, column in arguments.items()))
    outputs = tuple(output for single in singles for output in single.outputs)
    return Project(Aggregate(rows, (), tuple(calls)), outputs)
