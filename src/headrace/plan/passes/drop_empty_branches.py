"""drop_empty_branches: a branch of UNION ALL whose condition is never true has no rows.

    A UNION ALL (B WHERE false)   →   A

Changes of what only such a branch reads then reach nothing. Constants are folded before.
"""

from __future__ import annotations

from headrace.algebra.scalar import Literal
from headrace.plan.operators import Filter, Join, Operator, Project, UnionAll


def drop_empty_branches(plan: Operator) -> Operator:
    """Return the plan without branches that have no rows, where another one stays."""
    plan = plan.with_children(*map(drop_empty_branches, plan.children))
    if not isinstance(plan, UnionAll):
        return plan
    branches = tuple(branch for branch in plan.inputs if not _is_empty(branch))
    match branches:
        case ():
            return plan
        case (only,):
            return only
        case _:
            return plan.with_children(*branches)


def _is_empty(plan: Operator) -> bool:
    """Return whether the plan has no rows, whatever the tables have."""
    match plan:
        case Filter(condition=Literal(value=value)) if value is not True:
            return True
        case Filter() | Project() | Join():
            return any(map(_is_empty, plan.children))
        case _:
            return False
