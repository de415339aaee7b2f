"""push_filters: conditions move to where their columns come from.

    σ[a ∧ b ∧ c](L × R)  =  σ[a](L) ⋈[c] σ[b](R)      a reads L only, b reads R only

A left, semi or anti join lets conditions on the side that it preserves pass; of its own, those on
the other side go there. A left join becomes an inner one where a condition above it rejects the
NULLs that it pads with, a full join a left one.

A condition that can raise stays above the join or filter it was written at: below, it would see
rows that those remove, and in the delta of a join pairs of an old and a new row that never stood
beside each other. The others may pass it, since they only spare it rows.

Groups that occur in several places stay equal: see `repeated_groups`. A branch of a union that a
constant leaves without rows is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.algebra.scalar import Call, Column, Literal, Scalar, columns_of
from headrace.functions import can_raise, chain
from headrace.plan.conditions import rejects_nulls
from headrace.plan.extent import compose
from headrace.plan.operators import (
    Aggregate,
    Filter,
    FullJoin,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Replicate,
    Top,
    UnionAll,
    Unnest,
    Window,
)
from headrace.plan.passes.fold_constants import folded
from headrace.plan.passes.repeated_groups import (
    Conditions,
    RepeatedGroups,
    is_never,
    repeated_groups,
)

MOST_ROUNDS = 8


def push_filters(plan: Operator) -> Operator:
    """Return the plan with every condition as deep as it goes."""
    groups = repeated_groups(plan)
    pushed = _push(plan, (), groups)
    for _ in range(MOST_ROUNDS):
        if groups.found == groups.asked:
            return pushed
        groups = groups.next_round()
        pushed = _push(plan, (), groups)
    return _push(plan, (), RepeatedGroups(frozenset()))


def _push(plan: Operator, conditions: Conditions, groups: RepeatedGroups) -> Operator:
    """Return the plan's rows for which `conditions`, none of which can raise, are true."""
    match plan:
        case Filter(child=child, condition=condition):
            own = conjuncts(condition)
            movable = tuple(c for c in own if not can_raise(c))
            fixed = [c for c in own if can_raise(c)]
            return _filtered(_push(child, _once((*movable, *conditions)), groups), fixed)
        case Join():
            return _push_join(plan, conditions, groups)
        case OuterSemiAntiJoin():
            return _push_match(plan, conditions, groups)
        case FullJoin():
            return _push_full(plan, conditions, groups)
        case Project(outputs=outputs):
            return _push_project(plan, dict(outputs), conditions, groups)
        case (
            Aggregate(child=child, keys=keys)
            | Window(child=child, keys=keys)
            | Top(child=child, keys=keys)
        ) if keys:
            on_keys, above = _divided(conditions, frozenset(keys))
            below, retained = groups.divide(plan, on_keys)
            return _filtered(plan.with_children(_push(child, below, groups)), (*retained, *above))
        case Replicate(child=child):
            return plan.with_children(_push(child, conditions, groups))
        case Unnest(child=child, outputs=outputs, keep=keep):
            below, above = _divided(conditions, frozenset(child.columns))
            padded = keep and not any(rejects_nulls(c, frozenset(outputs)) for c in above)
            return _filtered(replace(plan, child=_push(child, below, groups), keep=padded), above)
        case UnionAll(inputs=inputs):
            branches = [_push(child, conditions, groups) for child in inputs]
            some = [branch for branch in branches if not is_empty(branch)] or branches[:1]
            return UnionAll(tuple(some)) if len(some) > 1 else some[0]
    children = (_push(child, (), groups) for child in plan.children)
    return _filtered(plan.with_children(*children), conditions)


def _push_join(join: Join, conditions: Conditions, groups: RepeatedGroups) -> Operator:
    own = () if join.condition is None else conjuncts(join.condition)
    movable = tuple(c for c in own if not can_raise(c))
    fixed = tuple(c for c in own if can_raise(c))
    to_left, rest = _divided(_once((*movable, *conditions)), frozenset(join.left.columns))
    to_right, join_terms = _divided(rest, frozenset(join.right.columns))
    left, right = _push(join.left, to_left, groups), _push(join.right, to_right, groups)
    joined = Join(left, right, chain("and", join_terms) if join_terms else None)
    return _filtered(joined, fixed)


def _push_match(
    join: OuterSemiAntiJoin, conditions: Conditions, groups: RepeatedGroups
) -> Operator:
    padded = frozenset(join.right.columns)
    if join.kind == "left" and any(rejects_nulls(c, padded) for c in conditions):
        return _push_join(Join(join.left, join.right, join.condition), conditions, groups)
    own = () if join.condition is None else conjuncts(join.condition)
    movable = tuple(c for c in own if not can_raise(c))
    fixed = tuple(c for c in own if can_raise(c))
    to_right, join_terms = _divided(movable, padded)
    to_left, above = _divided(conditions, frozenset(join.left.columns))
    if join.kind == "semi":
        tests, join_terms = _divided(join_terms, frozenset(join.left.columns))
        to_left = _once((*tests, *to_left))
    tested = (*join_terms, *fixed)
    joined = replace(
        join,
        left=_push(join.left, to_left, groups),
        right=_push(join.right, to_right, groups),
        condition=chain("and", tested) if tested else None,
    )
    return _filtered(joined, above)


def _push_full(join: FullJoin, conditions: Conditions, groups: RepeatedGroups) -> Operator:
    """Return the filtered join; a condition that rejects NULLs of a side makes it a left join."""
    for preserved, padded in ((join.left, join.right), (join.right, join.left)):
        if any(rejects_nulls(c, frozenset(preserved.columns)) for c in conditions):
            outer = OuterSemiAntiJoin(preserved, padded, "left", join.condition)
            return _columns(_push_match(outer, conditions, groups), join.columns)
    children = (_push(child, (), groups) for child in join.children)
    return _filtered(join.with_children(*children), conditions)


def _columns(plan: Operator, columns: tuple[Column, ...]) -> Operator:
    if plan.columns == columns:
        return plan
    return Project(plan, tuple((column, column) for column in columns))


def _push_project(
    plan: Project, outputs: dict[Column, Scalar], conditions: Conditions, groups: RepeatedGroups
) -> Operator:
    below: list[Scalar] = []
    above: list[Scalar] = []
    for condition in conditions:
        inlined = compose(condition, outputs)
        if inlined is None or can_raise(inlined):
            above.append(condition)
        else:
            below.extend(conjuncts(folded(inlined)))
    return _filtered(plan.with_children(_push(plan.child, tuple(below), groups)), above)


def _once(conditions: Iterable[Scalar]) -> Conditions:
    return tuple(dict.fromkeys(conditions))


def is_empty(plan: Operator) -> bool:
    """Return whether constants leave the plan without rows, whatever its relations have."""
    match plan:
        case Filter(child=child, condition=condition):
            return any(map(is_never, conjuncts(condition))) or is_empty(child)
        case Project(child=child) | Window(child=child) | Top(child=child):
            return is_empty(child)
        case Aggregate(child=child, keys=keys):
            return bool(keys) and is_empty(child)
        case Join(left=left, right=right):
            return is_empty(left) or is_empty(right)
        case OuterSemiAntiJoin(left=left, kind="left" | "semi" | "anti"):
            return is_empty(left)
        case UnionAll(inputs=inputs):
            return all(map(is_empty, inputs))
        case _:
            return False


def _divided(
    conditions: Iterable[Scalar], columns: frozenset[Column]
) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """Return the conditions that read only `columns`, and the others."""
    inside: list[Scalar] = []
    outside: list[Scalar] = []
    for condition in conditions:
        (inside if columns_of(condition) <= columns else outside).append(condition)
    return tuple(inside), tuple(outside)


def _filtered(plan: Operator, conditions: Iterable[Scalar]) -> Operator:
    conditions = tuple(conditions)
    return Filter(plan, chain("and", conditions)) if conditions else plan


def conjuncts(condition: Scalar) -> tuple[Scalar, ...]:
    """Return the terms of a chain of ANDs, in their order, without those that are just true."""
    if isinstance(condition, Call) and condition.function == "and":
        return tuple(term for part in condition.arguments for term in conjuncts(part))
    if isinstance(condition, Literal) and condition.value is True:
        return ()
    return (condition,)
