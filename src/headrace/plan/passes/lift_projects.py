"""lift_projects: expressions that can raise are computed above joins, for the rows left there.

    π[f(a)](L) ⋈ R  =  π[f(a)](L ⋈ R)      f can raise, and the join's condition does not read it

PostgreSQL computes the columns of an inner query there too. Groups are computed whole before they
are joined, so what is computed from them stays. So does, on the padded side of a left join, what is
not NULL where it is padded.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.scalar import Column, Scalar, columns_of
from headrace.functions import can_raise
from headrace.plan.conditions import is_null
from headrace.plan.operators import (
    Aggregate,
    Filter,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Top,
    Window,
)

Outputs = dict[Column, Scalar]


def lift_projects(plan: Operator) -> Operator:
    """Return the plan with expressions that can raise above the joins they stood below."""
    plan = plan.with_children(*(lift_projects(child) for child in plan.children))
    if not isinstance(plan, (Join, OuterSemiAntiJoin)):
        return plan
    tested = frozenset[Column]() if plan.condition is None else columns_of(plan.condition)
    left, from_left = _divided(plan.left, tested)
    right, from_right = _divided(plan.right, tested | _padded(plan))
    lifted = from_left | from_right
    if not lifted:
        return plan
    joined = replace(plan, left=left, right=right)
    return Project(joined, tuple((column, lifted.get(column, column)) for column in plan.columns))


def _padded(join: Join | OuterSemiAntiJoin) -> frozenset[Column]:
    """Return columns of the right side that must be computed below the join.

    Rows without a match have NULL in them; computed above the join, these would not be NULL.
    """
    if isinstance(join, Join) or not isinstance(join.right, Project):
        return frozenset()
    below = frozenset(join.right.child.columns)
    return frozenset(
        c for c, s in join.right.outputs if join.kind != "left" or not is_null(s, below)
    )


def _divided(side: Operator, tested: frozenset[Column]) -> tuple[Operator, Outputs]:
    """Return a side of a join without the expressions that are lifted, and those."""
    if not isinstance(side, Project) or _is_grouped(side.child):
        return side, {}
    lifted = {c: scalar for c, scalar in side.outputs if can_raise(scalar) and c not in tested}
    if not lifted:
        return side, {}
    remaining: Outputs = {c: scalar for c, scalar in side.outputs if c not in lifted}
    read = frozenset[Column]().union(*map(columns_of, lifted.values()))
    remaining |= {column: column for column in side.child.columns if column in read}
    if not remaining:
        return side, {}
    return Project(side.child, tuple(remaining.items())), lifted


def _is_grouped(plan: Operator) -> bool:
    match plan:
        case Aggregate() | Window() | Top():
            return True
        case Project(child=child) | Filter(child=child):
            return _is_grouped(child)
        case _:
            return False
