"""try_keys: an equality between two inputs of a join never raises, so that it can be a join key.

    σ[a.k = b.k - 1](A × B)   →   A ⋈[a.k = try(b.k - 1)] B

A condition that can raise stays above joins (see `push_filters`), which leaves a product below it.
As a key, what would raise is NULL, and the row has no match.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from headrace.algebra.scalar import Call, Column, Scalar, columns_of
from headrace.functions import can_raise, chain, tried
from headrace.plan.operators import Filter, FullJoin, Join, Operator, OuterSemiAntiJoin, Project
from headrace.plan.passes.push_filters import conjuncts

Inputs = dict[Column, frozenset[int]]


def try_keys(plan: Operator) -> Operator:
    """Return the plan with equalities between inputs of joins rewritten so that none raises."""
    plan = plan.with_children(*map(try_keys, plan.children))
    if not isinstance(plan, Filter | Join | OuterSemiAntiJoin | FullJoin):
        return plan
    if not any(_may_be_key(term) for scalar in plan.scalars for term in conjuncts(scalar)):
        return plan
    inputs = _inputs(plan.children, count())
    return plan.with_scalars(tuple(_with_keys(scalar, inputs) for scalar in plan.scalars))


def _may_be_key(term: Scalar) -> bool:
    return isinstance(term, Call) and term.function == "=" and can_raise(term)


def _with_keys(condition: Scalar, inputs: Inputs) -> Scalar:
    terms = conjuncts(condition)
    return chain("and", tuple(_key(term, inputs) or term for term in terms)) if terms else condition


def _key(term: Scalar, inputs: Inputs) -> Scalar | None:
    """Return the equality without errors, if its sides read different inputs."""
    if not isinstance(term, Call) or not _may_be_key(term):
        return None
    from_left, from_right = (
        frozenset[int]().union(*(inputs[column] for column in columns_of(side)))
        for side in term.arguments
    )
    left, right = map(tried, term.arguments)
    if not from_left or not from_right or from_left & from_right or left is None or right is None:
        return None
    return Call(term.function, (left, right), term.type)


def _inputs(plans: Iterable[Operator], numbers: count[int]) -> Inputs:
    """Return for each column the numbers of the inputs of joins below that it comes from."""
    inputs_by_column: Inputs = {}
    for plan in plans:
        match plan:
            case Join() | OuterSemiAntiJoin() | FullJoin() | Filter():
                below = _inputs(plan.children, numbers)
                inputs_by_column |= {column: below[column] for column in plan.columns}
            case Project(outputs=outputs):
                below = _inputs(plan.children, numbers)
                for column, scalar in outputs:
                    inputs_by_column[column] = frozenset[int]().union(
                        *(below[c] for c in columns_of(scalar))
                    )
            case _:
                inputs_by_column |= dict.fromkeys(plan.columns, frozenset({next(numbers)}))
    return inputs_by_column
