"""drop_distincts: rows that cannot be equal are not made distinct.

    δ(R) = R             the columns of R contain a key
    L ⋉ δ(R) = L ⋉ R     whether there is a match does not depend on how many there are

Only keys that the query itself makes count, as those of its groups: a constraint of a table may be
dropped, and the stored groups would be missed.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.scalar import Column, columns_of
from headrace.plan.keys import are_unique
from headrace.plan.operators import Aggregate, Operator, OuterSemiAntiJoin, Project


def drop_distincts(plan: Operator) -> Operator:
    """Return the plan without groupings that change nothing."""
    plan = plan.with_children(*(drop_distincts(child) for child in plan.children))
    match plan:
        case Aggregate(child=child, keys=keys, calls=()) if keys and are_unique(keys, child, {}):
            return _columns(child, keys)
        case OuterSemiAntiJoin(right=right, condition=condition, kind="semi" | "anti"):
            read = frozenset[Column]() if condition is None else columns_of(condition)
            return replace(plan, right=_once_is_enough(right, read))
        case _:
            return plan


def _once_is_enough(plan: Operator, read: frozenset[Column]) -> Operator:
    """Return the plan's rows, some of them perhaps more often; at least the columns in `read`."""
    match plan:
        case Project(child=child, outputs=outputs):
            used_outputs = tuple(output for output in outputs if output[0] in read) or outputs[:1]
            below = frozenset[Column]().union(*(columns_of(scalar) for _, scalar in used_outputs))
            return Project(_once_is_enough(child, below), used_outputs)
        case Aggregate(child=child, keys=keys) if keys and read <= frozenset(keys):
            return _once_is_enough(_columns(child, keys), read)
        case _:
            return plan


def _columns(plan: Operator, columns: tuple[Column, ...]) -> Operator:
    return Project(plan, tuple((column, column) for column in columns))
