"""Stages: a plan cut at its stateful operators, and where its change would grow beyond measure.

The change of a region with n joins has about n² / 2 of them, as each term of it reads the state of
what stands below. A region therefore has at most `MOST_JOINS`, of which an outer, semi or anti join
counts for two: beyond, a side of the join is computed before it, as a relation of its own. So is a
side with joins where the change has it several times: the one that an outer, semi or anti join
looks for matches in, if it has more than `MOST_MATCHED`, and any of a full join, or of an outer
join whose condition can raise.

A side that is compared with a single row, such as an average, is read whole whenever that changes:
no key leads from the one to the other. If it has joins it is a relation of its own, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from headrace.algebra.scalar import Call, Column, Literal, Scalar
from headrace.functions import call
from headrace.plan.compose import compose
from headrace.plan.group_stage import group_stage
from headrace.plan.loop import reads
from headrace.plan.loop_stage import cycle_stage, loop_stage, nested_stage, recursion_below
from headrace.plan.operators import (
    Aggregate,
    Filter,
    FullJoin,
    Join,
    MatchJoin,
    Operator,
    Project,
    Recursive,
    Top,
    Window,
)
from headrace.plan.partition_stage import partition_stage
from headrace.plan.passes.push_filters import conjuncts
from headrace.plan.rename import matching, numbered, outline, renamed
from headrace.plan.split_match import can_raise_on_a_pair, split_match
from headrace.plan.stage import Outputs, Stage, stage_types
from headrace.types import BOOLEAN

__all__ = ["Stage", "cut_stages", "stage_types"]

MOST_JOINS = 8
MOST_MATCHED = 2
TRUE = Literal(True, BOOLEAN)


def cut_stages(
    plan: Operator, relation: str, cycle: frozenset[str] = frozenset()
) -> tuple[Stage, ...]:
    """The stages of a plan in the order they are computed; the last writes `relation`.

    Hidden relations of the earlier ones are named after it. Parts of the plan that are equal up to
    what their columns are called, as a query of WITH that is used twice, share one. `cycle` has the
    relations of all stream tables of the cycle that the plan's is in, if it is in one.
    """
    # Relations of loops that are being cut, or that others cut: what reads them is part of these.
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
        """The region below: every stateful operator in it becomes a relation of its own.

        What reads a loop that is being cut is part of it, and stays whole.
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
        if isinstance(node, MatchJoin) and _joins(node.right) > MOST_MATCHED:
            node = replace(node, right=own(node.right))
        if not isinstance(node, (Join, MatchJoin)) or _joins(node) <= MOST_JOINS:
            return node
        larger = max(node.children, key=_joins)
        return node.with_children(*(own(c) if c is larger else c for c in node.children))

    def repeated(node: Operator) -> bool:
        """Whether its rows are read in several places, each with expressions of its own."""
        return times[numbered(node)[0]] > 1

    def own(node: Operator) -> Operator:
        """The rows of a relation of its own."""
        alike = shared.setdefault(outline(node), [])
        for other, shown in alike:
            names = matching(other, node)
            if names is not None:
                return renamed(shown, names)
        stage = cut(node, f"{relation}h{next(numbers)}")
        earlier.append(stage)
        alike.append((node, stage.shown()))
        return stage.shown()

    def nested(node: Recursive) -> Operator:
        """A recursion that reads the cycle, as a relation of the cycle's loop."""
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
    here = isinstance(plan, Join) + 2 * isinstance(plan, (MatchJoin, FullJoin))
    return here + sum(map(_joins, plan.children))


def _compared_with_one(node: Operator) -> Operator | None:
    """The side of a join whose other side is a single row that it is not equated with."""
    if not isinstance(node, Join) or any(map(_equates, conjuncts(node.condition or TRUE))):
        return None
    if _is_single(node.right):
        return node.left
    return node.right if _is_single(node.left) else None


def _has_pairs(plan: Operator) -> bool:
    """Whether the plan has joins other than with single rows."""
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
    """Whether it is the one row of an aggregate without groups."""
    if isinstance(plan, (Project, Filter)):
        return _is_single(plan.child)
    return isinstance(plan, Aggregate) and not plan.keys


def _peel(node: Operator) -> tuple[Aggregate | Window | Top, Outputs, Scalar | None] | None:
    """Projections and filters above a stateful operator as one list of outputs and one condition.

    None where there is none, or where the expressions would become too large: then what
    is above belongs to the next stage.
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
