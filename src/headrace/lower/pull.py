"""pull: conditions on the enclosing row move from inside a query to its top.

    σ[e = outer(s) ∧ q](R)   →   σ[q](R)  and the condition  e = outer(s)

What is left is a query of its own, and the conditions become those of a join with it.
"""

from __future__ import annotations

from headrace.algebra.scalar import Column, Outer, Scalar, columns_of, outer_reads, walk
from headrace.lower.fresh import conjunction
from headrace.plan.operators import Filter, Join, MatchJoin, Operator, Project
from headrace.plan.passes.push_filters import conjuncts


def is_correlated(plan: Operator) -> bool:
    """Whether the plan reads anything of the query around it."""
    return next(outer_reads(plan), None) is not None


def reads_outside(scalar: Scalar) -> bool:
    return any(isinstance(node, Outer) for node in walk(scalar))


def pull(plan: Operator) -> tuple[Operator, tuple[Scalar, ...]] | None:
    """The plan without the conditions that read the enclosing row, and these.

    The plan keeps its columns, and gains those that the conditions read. None if it reads the
    enclosing row anywhere else.
    """
    if not is_correlated(plan):
        return plan, ()
    match plan:
        case Filter(child=child, condition=condition):
            below = pull(child)
            if below is None:
                return None
            inside, pulled = below
            terms = conjuncts(condition)
            own = conjunction(term for term in terms if not reads_outside(term))
            outward = tuple(term for term in terms if reads_outside(term))
            return inside if own is None else Filter(inside, own), (*pulled, *outward)
        case Project(child=child, outputs=outputs):
            if any(reads_outside(scalar) for _, scalar in outputs):
                return None
            below = pull(child)
            if below is None:
                return None
            inside, pulled = below
            return Project(inside, (*outputs, *_read(pulled, inside, plan))), pulled
        case Join(left=left, right=right, condition=condition):
            one, other = pull(left), pull(right)
            if one is None or other is None:
                return None
            (first, from_left), (second, from_right) = one, other
            terms = () if condition is None else conjuncts(condition)
            own = conjunction(term for term in terms if not reads_outside(term))
            outward = tuple(term for term in terms if reads_outside(term))
            return Join(first, second, own), (*from_left, *from_right, *outward)
        case MatchJoin(left=left, right=right, condition=condition):
            if is_correlated(right) or (condition is not None and reads_outside(condition)):
                return None
            below = pull(left)
            return None if below is None else (plan.with_children(below[0], right), below[1])
        case _:
            return None


def _read(
    conditions: tuple[Scalar, ...], inside: Operator, outer: Operator
) -> tuple[tuple[Column, Column], ...]:
    """The columns that conditions read and a projection would drop."""
    read = frozenset[Column]().union(*map(columns_of, conditions))
    shown = frozenset(outer.columns)
    return tuple((c, c) for c in inside.columns if c in read and c not in shown)
