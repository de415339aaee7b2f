"""Passes: plan to plan, the same rows with less work. Each is one file with its function."""

from __future__ import annotations

from collections.abc import Callable

from headrace.plan.operators import Operator
from headrace.plan.passes.compute_keys import compute_keys
from headrace.plan.passes.drop_distincts import drop_distincts
from headrace.plan.passes.drop_empty_branches import drop_empty_branches
from headrace.plan.passes.factor_conditions import factor_conditions
from headrace.plan.passes.fold_constants import fold_constants
from headrace.plan.passes.lift_projects import lift_projects
from headrace.plan.passes.merge_aggregates import merge_aggregates
from headrace.plan.passes.merge_projects import merge_projects
from headrace.plan.passes.prune_columns import prune_columns
from headrace.plan.passes.push_filters import push_filters
from headrace.plan.passes.span_equalities import span_equalities
from headrace.plan.passes.split_distinct import split_distinct
from headrace.plan.passes.try_keys import try_keys

Pass = Callable[[Operator], Operator]

PASSES: tuple[Pass, ...] = (
    fold_constants,
    drop_empty_branches,
    factor_conditions,
    merge_aggregates,
    split_distinct,
    try_keys,
    push_filters,
    # Inner joins are known now, and conditions that can raise stand apart.
    span_equalities,
    drop_distincts,
    compute_keys,
    lift_projects,
    prune_columns,
    merge_projects,
    # Merged projections put constants into expressions.
    fold_constants,
)


def improve(plan: Operator) -> Operator:
    """Return the plan after all passes, in their order."""
    for apply in PASSES:
        plan = apply(plan)
    return plan


__all__ = [
    "PASSES",
    "Pass",
    "compute_keys",
    "drop_distincts",
    "drop_empty_branches",
    "factor_conditions",
    "fold_constants",
    "improve",
    "lift_projects",
    "merge_aggregates",
    "merge_projects",
    "prune_columns",
    "push_filters",
    "span_equalities",
    "split_distinct",
    "try_keys",
]
