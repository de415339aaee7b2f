"""Where a delta plan nets rows: below expressions that can raise, unless rows are only inserted.

A log holds rows that were added and removed again. Sums and joins may read them raw, since their
weights cancel; an expression that can raise (a division, a sum that may overflow) must not, or a
row that was deleted long ago still divides by zero. So `guard_errors` nets its input first. Changes
are netted when they are written.

`Net` keeps rows from a query that were added and removed again. It groups by all columns, which
takes Spark many times as long as reading, and where all weights are positive it removes no row: the
bag is the same without it. A source that was just copied is such a state, so `drop_nets` spares
first computations the netting.
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
    Merge,
    Net,
    Operator,
    OuterSemiAntiJoin,
    OuterSemiAntiJoinDelta,
    Project,
    Replicate,
    Scan,
    Top,
    TopMerge,
    UnionAll,
    Unnest,
    Values,
    Window,
)


def guard_errors(plan: Operator) -> Operator:
    """Return the plan with `Net` below every node whose expressions can raise on a raw log."""
    plan = plan.with_children(*(guard_errors(child) for child in plan.children))
    if isinstance(plan, FullJoin) or _raises(plan):
        return plan.with_children(*map(_netted, plan.children))
    if isinstance(plan, OuterSemiAntiJoin):
        # Only rows that exist can match, not rows that were added and removed again.
        return replace(plan, right=_netted(plan.right))
    return plan


def _netted(plan: Operator) -> Operator:
    return plan if is_net(plan) else Net(plan)


def _raises(node: Operator) -> bool:
    match node:
        case Filter(condition=condition):
            return can_raise(condition)
        case Join() | OuterSemiAntiJoin() | OuterSemiAntiJoinDelta():
            return any(map(can_raise, node.scalars))
        case Unnest(function=name) if TABLE_FUNCTION_BY_NAME[name].raises:
            return True
        case Project() | Replicate() | Unnest():
            return any(map(can_raise, node.scalars))
        case _:
            return False


def is_net(plan: Operator) -> bool:
    """Return whether every row existed before or after, so that expressions may be evaluated on it.

    A net row may stand beside its own opposite: an update of a column that a projection leaves out
    gives −(k, v) and +(k, v). State read raw from a log has rows that were added and removed again.
    A join's change, a sum, has pairs of an old and a new row that cancel: no sum is net.
    """
    match plan:
        case Scan(version=version):
            return version == "change"
        case Net() | Accumulate():
            return True
        case Merge(state=state):
            # An extremum that was removed and added again leaves its group's row as it was.
            return not state.extrema
        case Values() | TopMerge():
            return True
        case Window(child=child) | Top(child=child):
            return is_net(child)
        case Filter(child=child) | Project(child=child) | Unnest(child=child):
            return is_net(child)
        case Replicate(child=child):
            return is_net(child)
        case Join() | OuterSemiAntiJoin() | FullJoin():
            return all(map(is_net, plan.children))
        case _:
            return False


def drop_nets(plan: Operator, adding: frozenset[str]) -> Operator:
    """Return the plan without `Net` where its input has positive weights only.

    `adding` are relations whose logs, up to the state that is read, remove no row.
    """
    if isinstance(plan, Window) and isinstance(plan.child, Net):
        # A window numbers the copies of a row, and needs them in one place for that.
        return replace(plan, child=Net(drop_nets(plan.child.child, adding)))
    if isinstance(plan, Net) and _only_adds(plan.child, adding):
        return drop_nets(plan.child, adding)
    return plan.with_children(*(drop_nets(child, adding) for child in plan.children))


def _only_adds(plan: Operator, adding: frozenset[str]) -> bool:
    """Return whether every row of the plan has a positive weight.

    A replicated row may have weight 0.
    """
    match plan:
        case Scan(relation=relation, version=version):
            return version == "after" and relation in adding
        case Values():
            return True
        case (
            Net() | Filter() | Project() | Unnest() | UnionAll() | Join() | OuterSemiAntiJoin()
            | FullJoin() | Accumulate() | Window() | Top()
        ):  # fmt: skip
            return all(_only_adds(child, adding) for child in plan.children)
        case _:
            return False


def is_grouped(plan: Operator) -> bool:
    """Return whether the plan's rows are groups with keys and states, so that none occurs twice."""
    match plan:
        case Accumulate():
            return True
        case Project(child=child) | Filter(child=child):
            return is_grouped(child)
        case _:
            return False
