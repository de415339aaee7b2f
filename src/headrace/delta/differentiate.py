"""The change of a stage as a plan: what one refresh has to compute.

no state     d region
additive     Merge of the stored groups with d region, TopMerge of stored first rows; then, if that
             leaves stale groups, these recomputed; where rows are only inserted, it leaves none
otherwise    the touched groups or partitions recomputed, minus their stored rows
in full      the stage over the state after, minus everything stored

`only_grows` decides whether a change can only add rows: then no row can have been removed. A plan
that is monotone in all relations that changed gains rows, and loses none, when they gain rows:

| operator | only gains rows if |
|---|---|
| Filter, Project, Unnest, Replicate, UnionAll, Join, semi join | all inputs do |
| left and anti join | the preserved side does, and the other did not change |
| any other | nothing below it changed |

The table is about the net change: logs that are read raw have rows that were added and removed
again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.delta.nets import guard_errors, is_net
from headrace.delta.order_joins import order_joins
from headrace.plan.operators import (
    Empty,
    Filter,
    Join,
    Merge,
    Negate,
    Net,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Replicate,
    Restrict,
    Scan,
    Top,
    TopMerge,
    UnionAll,
    Unnest,
)
from headrace.plan.stage import Partitions
from headrace.plan.stages import Stage


def relations_of(plan: Operator) -> frozenset[str]:
    """Return the relations that a plan reads."""
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
        """Return the plan over the states before the change.

        An unchanged relation is the same before and after, and is read as one input.
        """
        if isinstance(of, Scan):
            return replace(of, version="before" if of.relation in self.changed else "after")
        return of.with_children(*(self.before(child) for child in of.children))

    def after(self, of: Operator) -> Operator:
        if isinstance(of, Scan):
            return replace(of, version="after")
        return of.with_children(*(self.after(child) for child in of.children))


def drop_empty(plan: Operator) -> Operator:
    """Return the node without inputs that have no rows; children are taken as they are."""
    match plan:
        case UnionAll(inputs=inputs):
            terms = tuple(term for term in map(drop_empty, inputs) if not isinstance(term, Empty))
            if not terms:
                return Empty(plan.columns)
            return terms[0] if len(terms) == 1 else UnionAll(terms)
        case OuterSemiAntiJoin(left=left, right=right):
            if isinstance(left, Empty) or (isinstance(right, Empty) and plan.kind == "semi"):
                return Empty(plan.columns)
        case Join() | Filter() | Project() | Negate() | Net() | Replicate() | Unnest():
            if any(isinstance(child, Empty) for child in plan.children):
                return Empty(plan.columns)
    return plan


def stage_change(stage: Stage, changed: frozenset[str], *, grows: bool = False) -> Operator:
    """Return the stage's stored columns with the weights to append, given what changed below it.

    `grows` says that no row of the region was removed. No group is stale then, and none is marked
    so.
    """
    return order_joins(_stage_change(_ordered(stage), changed, grows and stage.may_be_stale))


def _stage_change(stage: Stage, changed: frozenset[str], grows: bool) -> Operator:
    of = Differentiation(changed)
    change = of.change(stage.region)
    if isinstance(change, Empty):
        return Empty(tuple(column for _, column in stage.stored))
    if stage.state is None and stage.partitions is None:
        return guard_errors(stage.tail(change))
    if not stage.additive:
        return _recomputed(stage, _touched(stage, guard_errors(change)), of)
    if stage.partitions is not None:
        return _merged_top(stage, stage.partitions, guard_errors(change), grows)
    assert stage.state is not None
    stored: Operator = Scan(stage.relation, stage.state_fields, "before")
    change = guard_errors(change)
    if stage.state.extrema:
        stored, change = Net(stored), change if is_net(change) else Net(change)
    return stage.tail(Merge(stored, change, stage.state, grows))


def _merged_top(stage: Stage, partitions: Partitions, change: Operator, grows: bool) -> Operator:
    """Return the first rows of touched groups, computed from the stored ones and the change."""
    top = partitions.operator
    assert isinstance(top, Top) and top.limit is not None
    stored: Operator = Scan(stage.relation, stage.state_fields, "before")
    if stage.keys:
        touched = _touched(stage, change)
        pairs = zip(stage.keys, touched.columns, strict=True)
        stored = Restrict(
            stored,
            touched,
            tuple((stored_column, touched_column) for (stored_column, _), touched_column in pairs),
        )
    rows = Project(
        Net(stored), tuple((column, stored_column) for stored_column, column in partitions.rows)
    )
    netted = change if is_net(change) else Net(change)
    return stage.tail(
        TopMerge(rows, netted, top.keys, top.order, top.ties, top.limit, top.with_ties, grows)
    )


def stale_change(stage: Stage, changed: frozenset[str]) -> Operator:
    """Return the change of the stage's stale groups, whose keys the caller gives."""
    keys = (replace(column, id=f"touched_{column.id}") for column, _ in stage.keys)
    fields = tuple((f"k{i}", touched) for i, touched in enumerate(keys, 1))
    stale = Scan(stage.relation, fields, "stale")
    return order_joins(_recomputed(_ordered(stage), stale, Differentiation(changed)))


def _ordered(stage: Stage) -> Stage:
    """Return the stage with its joins ordered so that each has a condition, where that is possible.

    The change of a product of two relations is a sum, into which no join above it could be moved.
    """
    return replace(stage, region=order_joins(stage.region))


def _touched(stage: Stage, change: Operator) -> Operator:
    """Return the keys of the groups or partitions that a change of the region touches."""
    columns = ((replace(c, id=f"touched_{c.id}"), key) for c, key in stage.keys)
    return Project(change, tuple(columns))


def _recomputed(stage: Stage, touched: Operator, of: Differentiation) -> Operator:
    """Return the groups of these keys recomputed, minus their stored rows."""
    rows = guard_errors(of.after(stage.region))
    old: Operator = Scan(stage.relation, stage.stored, "before")
    if stage.keys:
        keys = zip(stage.keys, touched.columns, strict=True)
        pairs = tuple((column, key, touched_column) for (column, key), touched_column in keys)
        rows = Restrict(
            rows, touched, tuple((key, touched_column) for _, key, touched_column in pairs)
        )
        old = Restrict(
            old, touched, tuple((column, touched_column) for column, _, touched_column in pairs)
        )
    return UnionAll((stage.computed(Net(rows)), Negate(old)))


def stage_full(stage: Stage, *, stored: bool) -> Operator:
    """Return the stage evaluated in full, minus everything stored (if anything is)."""
    region = guard_errors(Differentiation(frozenset()).after(stage.region))
    raw = stage.additive and not stage.may_be_stale
    new = order_joins(stage.computed(region if raw else Net(region)))
    if not stored:
        return new
    return UnionAll((new, Negate(Scan(stage.relation, stage.stored, "before"))))


def only_grows(plan: Operator, changed: frozenset[str], grown: frozenset[str]) -> bool:
    """Return whether no row of the plan can be removed.

    Of the relations that `changed`, those in `grown` lost no rows. Relations that the plan reads
    and that did not change do not matter.
    """
    if not relations_of(plan) & changed:
        return True
    match plan:
        case Scan(relation=relation):
            return relation in grown
        case OuterSemiAntiJoin(left=left, right=right, kind="left" | "anti"):
            return only_grows(left, changed, grown) and not relations_of(right) & changed
        case (
            Filter()
            | Project()
            | Unnest()
            | Replicate()
            | UnionAll()
            | Join()
            | OuterSemiAntiJoin()
        ):
            return all(only_grows(child, changed, grown) for child in plan.children)
        case _:
            return False
