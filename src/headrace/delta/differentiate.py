"""The change of a stage as a plan: what one refresh has to compute.

no state     d region
additive     Merge of the stored groups with d region; then, if it leaves stale groups, these anew
otherwise    the touched groups recomputed, minus their stored rows
in full      the stage over the state after, minus everything stored
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.delta.guard_errors import guard_errors, is_net
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
    if not stage.additive:
        return _recomputed(stage, _touched(stage, guard_errors(change)), of)
    stored: Operator = Scan(stage.relation, stage.state_fields, "before")
    change = guard_errors(change)
    if stage.state.extrema:
        stored, change = Net(stored), change if is_net(change) else Net(change)
    return stage.tail(Merge(stored, change, stage.state))


def stale_change(stage: Stage, changed: frozenset[str]) -> Operator:
    """The change of the stage's stale groups, whose keys the caller gives."""
    assert stage.state is not None
    keys = ((c, replace(c, id=f"touched_{c.id}")) for c in stage.state.key_columns)
    fields = tuple((f"k{i}", touched) for i, (_, touched) in enumerate(keys, 1))
    return _recomputed(stage, Scan(stage.relation, fields, "stale"), Differentiation(changed))


def _touched(stage: Stage, change: Operator) -> Operator:
    """The keys of the groups that a change of the region touches."""
    assert stage.state is not None
    columns = ((replace(c, id=f"touched_{c.id}"), key) for c, key in stage.state.keys)
    return Project(change, tuple(columns))


def _recomputed(stage: Stage, touched: Operator, of: Differentiation) -> Operator:
    """The groups of these keys anew, minus their stored rows."""
    assert stage.state is not None
    rows = guard_errors(of.after(stage.region))
    old: Operator = Scan(stage.relation, stage.stored, "before")
    if stage.state.keys:
        keys = zip(stage.state.keys, touched.columns, strict=True)
        pairs = tuple((column, key, found) for (column, key), found in keys)
        rows = Restrict(rows, touched, tuple((key, found) for _, key, found in pairs))
        old = Restrict(old, touched, tuple((column, found) for column, _, found in pairs))
    new = stage.tail(Accumulate(Net(rows), stage.state))
    return UnionAll((new, Negate(old)))


def stage_full(stage: Stage, *, stored: bool) -> Operator:
    """The stage evaluated anew, minus everything stored (if anything is)."""
    region = guard_errors(Differentiation(frozenset()).after(stage.region))
    new: Operator
    if stage.state is None:
        new = stage.tail(region)
    else:
        raw = stage.additive and not stage.state.extrema
        new = stage.tail(Accumulate(region if raw else Net(region), stage.state))
    if not stored:
        return new
    return UnionAll((new, Negate(Scan(stage.relation, stage.stored, "before"))))
