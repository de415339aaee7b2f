"""Expressions that can raise see only rows that exist.

A log holds rows that were added and removed again. Sums and joins may read them raw, since their
weights cancel; an expression that can raise (a division, a sum that may overflow) must not, or a
row that is long gone still divides by zero. So its input is netted first. Changes come netted.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.functions import can_raise
from headrace.functions.tables import TABLE_FUNCTION_BY_NAME
from headrace.plan.operators import (
    Accumulate,
    Filter,
    FullJoin,
    Join,
    MatchJoin,
    Merge,
    Net,
    Operator,
    Project,
    Rematch,
    Replicate,
    Scan,
    Top,
    TopMerge,
    Unnest,
    Values,
    Window,
)


def guard_errors(plan: Operator) -> Operator:
    """The plan with `Net` below every node whose expressions can raise on rows of a raw log."""
    plan = plan.with_children(*(guard_errors(child) for child in plan.children))
    if isinstance(plan, FullJoin) or _raises(plan):
        return plan.with_children(*map(_netted, plan.children))
    if isinstance(plan, MatchJoin):
        # Whether a row matches is a question about rows that are there.
        return replace(plan, right=_netted(plan.right))
    return plan


def _netted(plan: Operator) -> Operator:
    return plan if is_net(plan) else Net(plan)


def _raises(node: Operator) -> bool:
    match node:
        case Filter(condition=condition):
            return can_raise(condition)
        case Join() | MatchJoin() | Rematch():
            return any(map(can_raise, node.scalars))
        case Unnest(function=name) if TABLE_FUNCTION_BY_NAME[name].raises:
            return True
        case Project() | Replicate() | Unnest():
            return any(map(can_raise, node.scalars))
        case _:
            return False


def is_net(plan: Operator) -> bool:
    """Whether every row of the plan was there before or after, so that expressions may see it.

    It may still stand beside its own opposite: an update of a column that a projection leaves out
    gives −(k, v) and +(k, v). State read raw from a log has rows that were added and removed again.
    A join's change, a sum, has pairs of an old and a new row that cancel: no sum is net.
    """
    match plan:
        case Scan(version=version):
            return version == "change"
        case Net() | Accumulate():
            return True
        case Merge(state=state):
            # An extremum that went and came back leaves its group's row as it was.
            return not state.extrema
        case Values() | TopMerge():
            return True
        case Window(child=child) | Top(child=child):
            return is_net(child)
        case Filter(child=child) | Project(child=child) | Unnest(child=child):
            return is_net(child)
        case Replicate(child=child):
            return is_net(child)
        case Join() | MatchJoin() | FullJoin():
            return all(map(is_net, plan.children))
        case _:
            return False
