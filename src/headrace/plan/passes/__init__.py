"""Passes: plan to plan, the same rows with less work. Each is one file with its function."""

from __future__ import annotations

from collections.abc import Callable

from headrace.plan.operators import Operator
from headrace.plan.passes.prune_columns import prune_columns
from headrace.plan.passes.push_filters import push_filters

Pass = Callable[[Operator], Operator]

PASSES: tuple[Pass, ...] = (push_filters, prune_columns)


def improve(plan: Operator) -> Operator:
    """The plan after all passes, in their order."""
    for apply in PASSES:
        plan = apply(plan)
    return plan


__all__ = ["PASSES", "Pass", "improve", "prune_columns", "push_filters"]
