"""Expressions that can raise see only rows that exist.

A log holds rows that were added and removed again. Sums and joins may read them raw, since their
weights cancel; an expression that can raise (a division, a sum that may overflow) must not, or a
row that is long gone still divides by zero. So its input is netted first. Changes come netted.
"""

from __future__ import annotations

from headrace.functions import can_raise
from headrace.plan.operators import (
    Accumulate,
    Filter,
    Join,
    Merge,
    Net,
    Operator,
    Project,
    Scan,
)


def guard_errors(plan: Operator) -> Operator:
    """The plan with `Net` below every node whose expressions can raise on rows of a raw log."""
    plan = plan.with_children(*(guard_errors(child) for child in plan.children))
    if not _raises(plan):
        return plan
    return plan.with_children(*(child if is_net(child) else Net(child) for child in plan.children))


def _raises(node: Operator) -> bool:
    match node:
        case Filter(condition=condition):
            return can_raise(condition)
        case Join(condition=condition):
            return condition is not None and can_raise(condition)
        case Project(outputs=outputs):
            return any(can_raise(scalar) for _, scalar in outputs)
        case _:
            return False


def is_net(plan: Operator) -> bool:
    """Whether no row of the plan's output stands beside its own opposite.

    A filter keeps that; a projection may fold rows together but never invents one; the product of
    net inputs is net. State read raw from a log is not.
    """
    match plan:
        case Scan(version=version):
            return version == "change"
        case Net() | Accumulate():
            return True
        case Merge(state=state):
            # An extremum that went and came back leaves its group's row as it was.
            return not state.extrema
        case Filter(child=child) | Project(child=child):
            return is_net(child)
        case Join(left=left, right=right):
            return is_net(left) and is_net(right)
        case _:
            return False
