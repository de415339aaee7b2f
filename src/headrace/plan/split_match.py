"""A match that can raise is tried on the pairs that an inner join leaves.

    P = σ[f](L ⋈[s] R)        s ∧ f is the condition, f can raise
    L ⋉ R = L ⋉ P             L ▷ R = L ▷ P            P compared with L by the columns that the
    L ⟕ R = P ∪ (L ▷ P, padded)                        condition reads, NULLs equal

The change of a join has pairs of an old and a new row that never stood beside each other. In the
change of P they cancel before f sees them; in that of a left, semi or anti join they could not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from headrace.algebra.scalar import Column, Literal, Scalar, columns_of
from headrace.functions import call, can_raise, chain
from headrace.plan.operators import Filter, FullJoin, Join, MatchJoin, Operator, Project, UnionAll
from headrace.plan.passes.push_filters import conjuncts


def can_raise_on_a_pair(plan: Operator) -> TypeGuard[MatchJoin | FullJoin]:
    """Whether it is an outer, semi or anti join whose condition can raise."""
    return isinstance(plan, (MatchJoin, FullJoin)) and any(map(can_raise, plan.scalars))


def split_match(plan: MatchJoin | FullJoin) -> Operator:
    """The same rows, with the condition tried on pairs. Both sides occur several times."""
    if isinstance(plan, FullJoin):
        left, project = plan.divided().inputs
        assert isinstance(left, MatchJoin) and isinstance(project, Project)
        assert isinstance(project.child, MatchJoin)
        return UnionAll((split_match(left), replace(project, child=split_match(project.child))))
    assert plan.condition is not None
    read = tuple(c for c in plan.left.columns if c in columns_of(plan.condition))
    if any(column.type.comparison == "none" for column in read):
        return plan
    terms = conjuncts(plan.condition)
    safe = tuple(term for term in terms if not can_raise(term))
    risky = chain("and", tuple(term for term in terms if can_raise(term)))
    pairs = Filter(Join(plan.left, plan.right, chain("and", safe) if safe else None), risky)
    if plan.kind != "left":
        return _matched(plan, pairs, read)
    unmatched = _matched(replace(plan, kind="anti"), pairs, read)
    kept = tuple((column, column) for column in plan.left.columns)
    padding = tuple((column, Literal(None, column.type)) for column in plan.right.columns)
    return UnionAll((pairs, Project(unmatched, (*kept, *padding))))


def _matched(plan: MatchJoin, pairs: Operator, read: tuple[Column, ...]) -> Operator:
    """The rows of the left side that stand in some pair, or in none."""
    if not read:
        found = Project(pairs, ((_seen(pairs.columns[0]), pairs.columns[0]),))
        return MatchJoin(plan.left, found, plan.kind)
    found = Project(pairs, tuple((_seen(column), column) for column in read))
    same = tuple(_same(column, _seen(column)) for column in read)
    return MatchJoin(plan.left, found, plan.kind, chain("and", same))


def _seen(column: Column) -> Column:
    return replace(column, id=f"{column.id}_seen")


def _same(left: Column, right: Column) -> Scalar:
    return call("is not distinct from", left, right)
