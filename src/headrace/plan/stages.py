"""Stages: a plan cut at its stateful operators, and where its change would grow beyond measure.

The change of a region with n joins has about n² / 2 joins, as each term of it reads the state of
the inputs below. A region therefore has at most `MOST_JOINS`, of which an outer, semi or anti join
counts for two: beyond, a side of the join is computed before it, as a relation of its own. So is a
side with joins that the change contains several times: the side in which an outer, semi or anti
join looks for matches, if it has more than `MOST_MATCHED`, and any side of a full join, or of an
outer join whose condition can raise.

A side that is compared with a single row, such as an average, is read whole whenever that row
changes: no key relates the two. If the side has joins it is a relation of its own, too.

A match that can raise is evaluated on the pairs that an inner join leaves:

    P = σ[f](L ⋈[s] R)        s ∧ f is the condition, f can raise
    L ⋉ R = L ⋉ P             L ▷ R = L ▷ P            P compared with L by the columns that the
    L ⟕ R = P ∪ (L ▷ P, padded)                        condition reads, NULLs equal

The change of a join has pairs of an old and a new row that never existed together. In the change
of P they cancel before f is evaluated; in the change of a left, semi or anti join they could not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import TypeGuard

from headrace.algebra.scalar import Call, Column, Literal, Scalar, columns_of
from headrace.functions import call, can_raise, chain
from headrace.plan.extent import compose
from headrace.plan.loop import reads
from headrace.plan.loop_stage import cycle_stage, loop_stage, nested_stage, recursion_below
from headrace.plan.operators import (
    Aggregate,
    Filter,
    FullJoin,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Recursive,
    Top,
    UnionAll,
    Window,
)
from headrace.plan.passes.push_filters import conjuncts
from headrace.plan.rename import matching, numbered, outline, renamed
from headrace.plan.stage import Outputs, Stage, stage_types
from headrace.plan.stateful_stages import group_stage, partition_stage
from headrace.types import BOOLEAN


def can_raise_on_a_pair(plan: Operator) -> TypeGuard[OuterSemiAntiJoin | FullJoin]:
    """Return whether the plan is an outer, semi or anti join whose condition can raise."""
    return isinstance(plan, (OuterSemiAntiJoin, FullJoin)) and any(map(can_raise, plan.scalars))


def split_match(plan: OuterSemiAntiJoin | FullJoin) -> Operator:
    """Return an equal plan that tries the condition on pairs. Both sides occur several times."""
    if isinstance(plan, FullJoin):
        left, project = plan.divided().inputs
        assert isinstance(left, OuterSemiAntiJoin) and isinstance(project, Project)
        assert isinstance(project.child, OuterSemiAntiJoin)
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
    left_outputs = tuple((column, column) for column in plan.left.columns)
    padding = tuple((column, Literal(None, column.type)) for column in plan.right.columns)
    return UnionAll((pairs, Project(unmatched, (*left_outputs, *padding))))


def _matched(plan: OuterSemiAntiJoin, pairs: Operator, read: tuple[Column, ...]) -> Operator:
    """Return the rows of the left side that stand in some pair, or in none."""
    if not read:
        matches = Project(pairs, ((_seen(pairs.columns[0]), pairs.columns[0]),))
        return OuterSemiAntiJoin(plan.left, matches, plan.kind)
    matches = Project(pairs, tuple((_seen(column), column) for column in read))
    same = tuple(_same(column, _seen(column)) for column in read)
    return OuterSemiAntiJoin(plan.left, matches, plan.kind, chain("and", same))


def _seen(column: Column) -> Column:
    return replace(column, id=f"{column.id}_seen")


def _same(left: Column, right: Column) -> Scalar:
    return call("is not distinct from", left, right)


__all__ = ["Stage", "cut_stages", "stage_types"]

MOST_JOINS = 8
MOST_MATCHED = 2
TRUE = Literal(True, BOOLEAN)


def cut_stages(
    plan: Operator, relation: str, cycle: frozenset[str] = frozenset()
) -> tuple[Stage, ...]:
    """Return the stages of a plan in the order they are computed; the last writes `relation`.

    Earlier stages write hidden relations, named after `relation`. Parts of the plan that are equal
    up to the names of their columns, as a query of WITH that is used twice, share a stage. `cycle`
    has the relations of all stream tables of the cycle that the plan's table is in, if any.
    """
    # Relations of loops that are cut here or elsewhere: operators that read one belong to its loop.
    opened = set(cycle)
    earlier: list[Stage] = []
    shared: dict[tuple[object, ...], list[tuple[Operator, Operator]]] = {}
    times = Counter(numbered(node)[0] for node in _stateful(plan))
    numbers = count(1)

    def cut(node: Operator, name: str) -> Stage:
        recursion = recursion_below(node)
        if recursion is not None:
            opened.add(name)
            return loop_stage(name, *recursion, inner)
        peeled = _peel(node)
        if peeled is None:
            region = inner(node)
            return Stage(name, region, tuple((column, column) for column in region.columns))
        stateful, outputs, condition = peeled
        region = inner(stateful.child)
        if isinstance(stateful, Aggregate):
            return group_stage(name, region, stateful, outputs, condition)
        return partition_stage(name, region, stateful, outputs, condition)

    def inner(node: Operator) -> Operator:
        """Return the region below: every stateful operator in it becomes a relation of its own.

        An operator that reads a loop that is being cut is part of the loop, and stays whole.
        """
        if reads(node, frozenset(opened)):
            if isinstance(node, Recursive):
                return nested(node)
            return node.with_children(*map(inner, node.children))
        if isinstance(node, Recursive):
            return own(node)
        peeled = _peel(node)
        if peeled is not None and (node is peeled[0] or not repeated(peeled[0])):
            return own(node)
        if isinstance(node, FullJoin) or can_raise_on_a_pair(node):
            sides = (own(child) if _joins(child) else inner(child) for child in node.children)
            node = node.with_children(*sides)
            return split_match(node) if can_raise_on_a_pair(node) else node
        whole = _compared_with_one(node)
        node = node.with_children(
            *(own(c) if c is whole and _has_pairs(c) else inner(c) for c in node.children)
        )
        if isinstance(node, OuterSemiAntiJoin) and _joins(node.right) > MOST_MATCHED:
            node = replace(node, right=own(node.right))
        if not isinstance(node, (Join, OuterSemiAntiJoin)) or _joins(node) <= MOST_JOINS:
            return node
        larger = max(node.children, key=_joins)
        return node.with_children(*(own(c) if c is larger else c for c in node.children))

    def repeated(node: Operator) -> bool:
        """Return whether several places read the node's rows, each with expressions of its own."""
        return times[numbered(node)[0]] > 1

    def own(node: Operator) -> Operator:
        """Return the node's rows as a relation of its own, which equal nodes share."""
        alike = shared.setdefault(outline(node), [])
        for equal_node, output in alike:
            names = matching(equal_node, node)
            if names is not None:
                return renamed(output, names)
        stage = cut(node, f"{relation}h{next(numbers)}")
        earlier.append(stage)
        alike.append((node, stage.shown()))
        return stage.shown()

    def nested(node: Recursive) -> Operator:
        """Return a recursion that reads the cycle, as a relation of the cycle's loop."""
        name = f"{relation}h{next(numbers)}"
        opened.add(name)
        stage = nested_stage(name, node, cycle, inner)
        earlier.append(stage)
        return stage.shown()

    last = cycle_stage(relation, plan, cycle, inner) if cycle else cut(plan, relation)
    return (*earlier, last)


def _stateful(plan: Operator) -> Iterator[Operator]:
    if isinstance(plan, (Aggregate, Window, Top)):
        yield plan
    for child in plan.children:
        yield from _stateful(child)


def _joins(plan: Operator) -> int:
    here = isinstance(plan, Join) + 2 * isinstance(plan, (OuterSemiAntiJoin, FullJoin))
    return here + sum(map(_joins, plan.children))


def _compared_with_one(node: Operator) -> Operator | None:
    """Return the side of a join whose other side is a single row that it is not equated with."""
    if not isinstance(node, Join) or any(map(_equates, conjuncts(node.condition or TRUE))):
        return None
    if _is_single(node.right):
        return node.left
    return node.right if _is_single(node.left) else None


def _has_pairs(plan: Operator) -> bool:
    """Return whether the plan has joins other than with single rows."""
    if isinstance(plan, Join) and (_is_single(plan.left) or _is_single(plan.right)):
        return any(map(_has_pairs, plan.children))
    return bool(_joins(plan))


def _equates(term: Scalar) -> bool:
    match term:
        case Call(function="=" | "is not distinct from", arguments=(Column(), Column())):
            return True
        case _:
            return False


def _is_single(plan: Operator) -> bool:
    """Return whether the plan is the one row of an aggregate without groups."""
    if isinstance(plan, (Project, Filter)):
        return _is_single(plan.child)
    return isinstance(plan, Aggregate) and not plan.keys


def _peel(node: Operator) -> tuple[Aggregate | Window | Top, Outputs, Scalar | None] | None:
    """Return a stateful operator, and the outputs and the condition of the plan above it.

    Return None where there is no such operator, or where the expressions would become too large:
    then the projections and filters above belong to the next stage.
    """
    match node:
        case Aggregate() | Window() | Top():
            return node, tuple((column, column) for column in node.columns), None
        case Project(child=child, outputs=outputs):
            peeled = _peel(child)
            if peeled is None:
                return None
            stateful, below, condition = peeled
            composed = _composed(outputs, below)
            return None if composed is None else (stateful, composed, condition)
        case Filter(child=child, condition=condition):
            peeled = _peel(child)
            if peeled is None:
                return None
            stateful, below, earlier = peeled
            own = compose(condition, dict(below))
            if own is None:
                return None
            both = own if earlier is None else call("and", earlier, own)
            return stateful, below, both
        case _:
            return None


def _composed(outputs: Outputs, below: Outputs) -> Outputs | None:
    composed: list[tuple[Column, Scalar]] = []
    for column, scalar in outputs:
        whole = compose(scalar, dict(below))
        if whole is None:
            return None
        composed.append((column, whole))
    return tuple(composed)
