"""split_distinct: aggregates of distinct values are aggregates over groups of them.

    γ[k; f(distinct x)](R)  =  γ[k; f(x)](γ[k, x](R))

Both groupings take in changes: a value that comes or goes once more is no change for the upper
one. Where calls differ in what is distinct, the groups are left to be computed whole.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.functions import AGGREGATE_BY_NAME
from headrace.plan.operators import Aggregate, AggregateCall, Operator


def split_distinct(plan: Operator) -> Operator:
    """Return the plan with every lone DISTINCT in aggregates as a grouping of its own."""
    plan = plan.with_children(*(split_distinct(child) for child in plan.children))
    if not isinstance(plan, Aggregate) or not any(call.distinct for call in plan.calls):
        return plan
    arguments = {call.arguments for call in plan.calls}
    if len(arguments) > 1 or not all(map(_takes_distinct, plan.calls)):
        return plan
    values = Aggregate(plan.child, tuple(dict.fromkeys((*plan.keys, *arguments.pop()))), ())
    return Aggregate(values, plan.keys, tuple(replace(c, distinct=False) for c in plan.calls))


def _takes_distinct(call: AggregateCall) -> bool:
    """Return whether the call sees equal arguments once, or ignores repeated ones."""
    alike = call.distinct or not AGGREGATE_BY_NAME[call.function].repeats
    return alike and call.only is None and call.read <= frozenset(call.arguments)
