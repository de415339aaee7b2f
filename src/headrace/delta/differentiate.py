"""The change of a stage as a plan: what one refresh has to compute.

no state     d region
additive     Merge of the stored groups with d region
otherwise    the touched groups recomputed, minus their stored rows
in full      the stage over the state after, minus everything stored
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.delta.guard_errors import guard_errors
from headrace.plan.operators import (
    Accumulate,
    Empty,
    Filter,
    Join,
    Merge,
    Negate,
    Net,
    Operator,
    Project,
    Restrict,
    Scan,
    UnionAll,
)
from headrace.plan.stages import Stage


def relations_of(plan: Operator) -> frozenset[str]:
    """The relations that a plan reads."""
    if isinstance(plan, Scan):
        return frozenset({plan.relation})
    return frozenset[str]().union(*(relations_of(child) for child in plan.children))


@dataclass(frozen=True)
class Differentiation:
    """One refresh in which exactly the relations in `changed` changed."""

    changed: frozenset[str]

    def change(self, of: Operator) -> Operator:
        if not relations_of(of) & self.changed:
            return Empty(of.columns)
        return drop_empty(of.delta(self))

    def before(self, of: Operator) -> Operator:
        """An unchanged relation is the same before and after, and read as one input."""
        if isinstance(of, Scan):
            return replace(of, version="before" if of.relation in self.changed else "after")
        return of.with_children(*(self.before(child) for child in of.children))

    def after(self, of: Operator) -> Operator:
        if isinstance(of, Scan):
            return replace(of, version="after")
        return of.with_children(*(self.after(child) for child in of.children))


def drop_empty(plan: Operator) -> Operator:
    """The node without inputs that have no rows; children are taken as they are."""
    match plan:
        case UnionAll(inputs=inputs):
            terms = tuple(term for term in map(drop_empty, inputs) if not isinstance(term, Empty))
            if not terms:
                return Empty(plan.columns)
            return terms[0] if len(terms) == 1 else UnionAll(terms)
        case Join() | Filter() | Project() | Negate() | Net():
            if any(isinstance(child, Empty) for child in plan.children):
                return Empty(plan.columns)
    return plan


def stage_change(stage: Stage, changed: frozenset[str]) -> Operator:
    """The stage's stored columns with the weights to append, given what changed below it."""
    of = Differentiation(changed)
    change = of.change(stage.region)
    if isinstance(change, Empty):
        return Empty(tuple(column for _, column in stage.stored))
    if stage.state is None:
        return guard_errors(stage.tail(change))
    if stage.additive:
        stored = Scan(stage.relation, stage.state_fields, "before")
        return stage.tail(Merge(stored, guard_errors(change), stage.state))
    return _recomputed(stage, change, of)


def _recomputed(stage: Stage, change: Operator, of: Differentiation) -> Operator:
    assert stage.state is not None
    rows = guard_errors(of.after(stage.region))
    old: Operator = Scan(stage.relation, stage.stored, "before")
    if stage.state.keys:
        columns = tuple(
            (replace(column, id=f"touched_{column.id}"), key) for column, key in stage.state.keys
        )
        touched = Project(guard_errors(change), columns)
        rows = Restrict(rows, touched, tuple((key, column) for column, key in columns))
        stored_keys = zip(stage.state.key_columns, touched.columns, strict=True)
        old = Restrict(old, touched, tuple(stored_keys))
    new = stage.tail(Accumulate(Net(rows), stage.state))
    return UnionAll((new, Negate(old)))


def stage_full(stage: Stage, *, stored: bool) -> Operator:
    """The stage evaluated anew, minus everything stored (if anything is)."""
    region = guard_errors(Differentiation(frozenset()).after(stage.region))
    new: Operator
    if stage.state is None:
        new = stage.tail(region)
    else:
        new = stage.tail(Accumulate(region if stage.additive else Net(region), stage.state))
    if not stored:
        return new
    return UnionAll((new, Negate(Scan(stage.relation, stage.stored, "before"))))
