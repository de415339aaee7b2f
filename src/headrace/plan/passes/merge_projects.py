"""merge_projects: a projection over a projection is one.

π[f(x)](π[x = g(a)](R))  =  π[f(g(a))](R)

Where some g would be computed more often than before they stay apart, unless one can raise: then it
must be computed only where it is asked for, as PostgreSQL does, say in a branch of a CASE.
"""

from __future__ import annotations

from collections import Counter

from headrace.algebra.scalar import Call, Column, Scalar, walk
from headrace.functions import can_raise
from headrace.plan.extent import compose
from headrace.plan.operators import Operator, Project


def merge_projects(plan: Operator) -> Operator:
    """Return the plan with neighbouring projections merged."""
    plan = plan.with_children(*(merge_projects(child) for child in plan.children))
    if not isinstance(plan, Project) or not isinstance(plan.child, Project):
        return plan
    inner = dict(plan.child.outputs)
    uses = Counter(n for _, s in plan.outputs for n in walk(s) if isinstance(n, Column))
    repeated = any(
        isinstance(scalar, Call) and uses[column] > 1 for column, scalar in inner.items()
    )
    if repeated and not any(map(can_raise, inner.values())):
        return plan
    outputs: list[tuple[Column, Scalar]] = []
    for column, scalar in plan.outputs:
        merged = compose(scalar, inner)
        if merged is None:
            return plan
        outputs.append((column, merged))
    return Project(plan.child.child, tuple(outputs))
