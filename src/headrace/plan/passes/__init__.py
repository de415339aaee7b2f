"""Passes: plan to plan, the same rows with less work. Each is one file with its function."""

from __future__ import annotations

from collections.abc import Callable

from headrace.plan.operators import Operator
from headrace.plan.passes.lift_projects import lift_projects
from headrace.plan.passes.merge_projects import merge_projects
from headrace.plan.passes.prune_columns import prune_columns
from headrace.plan.passes.push_filters import push_filters

Pass = Callable[[Operator], Operator]

PASSES: tuple[Pass, ...] = (push_filters, lift_projects, prune_columns, merge_projects)


def improve(plan: Operator) -> Operator:
    """The plan after all passes, in their order."""
    for apply in PASSES:
        plan = apply(plan)
    return plan


__all__ = [
    "PASSES",
    "Pass",
    "improve",
    "lift_projects",
    "merge_projects",
    "prune_columns",
    "push_filters",
]
