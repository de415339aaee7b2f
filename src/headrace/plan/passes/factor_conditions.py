"""factor_conditions: conditions of every alternative are checked once, before them.

    (a ∧ b) ∨ (a ∧ c)   →   a ∧ (b ∨ c)

So a join that is written into each branch of an OR is found, and not a product with a filter.
"""

from __future__ import annotations

from headrace.algebra.scalar import Call, Scalar
from headrace.functions import can_raise, chain
from headrace.plan.operators import Filter, Join, Operator, OuterSemiAntiJoin
from headrace.plan.passes.push_filters import conjuncts


def factor_conditions(plan: Operator) -> Operator:
    """Return the plan with the conditions of its filters and joins factored."""
    plan = plan.with_children(*(factor_conditions(child) for child in plan.children))
    if not isinstance(plan, Filter | Join | OuterSemiAntiJoin):
        return plan
    return plan.with_scalars(tuple(map(_factored, plan.scalars)))


def _factored(condition: Scalar) -> Scalar:
    parts = [part for term in conjuncts(condition) for part in _parts(term)]
    return chain("and", parts) if parts else condition


def _parts(term: Scalar) -> tuple[Scalar, ...]:
    """Return the conditions that a term consists of; those that can raise stay where they are."""
    branches = [tuple(dict.fromkeys(conjuncts(branch))) for branch in disjuncts(term)]
    if len(branches) == 1:
        return (term,)
    common = [
        condition for condition in branches[0] if all(condition in branch for branch in branches)
    ]
    common = [condition for condition in common if not can_raise(condition)]
    if not common:
        return (term,)
    rest = [[condition for condition in branch if condition not in common] for branch in branches]
    # A branch that asks for nothing else makes the others superfluous.
    if not all(rest):
        return tuple(common)
    return (*common, chain("or", [chain("and", branch) for branch in rest]))


def disjuncts(condition: Scalar) -> tuple[Scalar, ...]:
    """Return the alternatives of a chain of ORs, in their order."""
    if isinstance(condition, Call) and condition.function == "or":
        return tuple(term for part in condition.arguments for term in disjuncts(part))
    return (condition,)
