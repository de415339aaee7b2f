"""The plans of a loop's rounds.

Over sets, a change outside of the loop is maintained by deleting too much and deriving again
(delete and rederive, DRed):

    1. lost      rows with a derivation from a removed row, round by round: all of them existed
                 before, and each may have other derivations
    2. again     those lost rows that follow from the rows left, and rows that follow from added
                 rows
    3. gained    rows that follow from these, round by round

Lost rows come from what the outside lost alone, never netted with what it gained: a row that loses
one derivation and gains another may be the only support of the one gained.

A round's rows are found one-sidedly (`OneSided`): lost ones over the states before, gained ones
over the states after, so that every row that is read existed, or exists. For a plan that reads no
relation of the loop they are the part of its net change with that sign; for the others

    L ⋈ R      part(L) ⋈ R  +  L ⋈ part(R)
    L op R     part(L) op R  +  (rows of L that match some changed row of R) op R

Over levels the loop is additive, and signed rows are carried from level to level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from headrace.algebra.scalar import Call, Column
from headrace.delta.differentiate import Differentiation, drop_empty
from headrace.delta.nets import guard_errors
from headrace.plan.loop import Loop, Variable, reads
from headrace.plan.operators import (
    Empty,
    Filter,
    Join,
    Net,
    Operator,
    OuterSemiAntiJoin,
    Part,
    PlanError,
    Project,
    Restrict,
    Scan,
    UnionAll,
    Unnest,
    Unseen,
    Version,
)
from headrace.plan.operators.part import Sign
from headrace.plan.passes.push_filters import conjuncts

Names = frozenset[str]
NONE: Names = frozenset()


@dataclass(frozen=True)
class OneSided:
    """The part of a plan's change that it loses or gains, as rows of the state on that side.

    Exactly the relations in `changed` change outside of the loop. The first round asks for what
    follows from that. A later one has `found`, those of the loop's `own` relations in which the
    round before found rows, and asks for what follows from these alone.
    """

    sign: Sign
    own: Names
    changed: Names = NONE
    found: Names = NONE

    def part(self, plan: Operator) -> Operator:
        if not reads(plan, self.own):
            change = self._outside(plan)
            return change if isinstance(change, Empty) else Part(Net(change), self.sign)
        match plan:
            case Scan(relation=relation):
                is_found = relation in self.found
                return replace(plan, version="found") if is_found else Empty(plan.columns)
            case Filter() | Project() | Unnest() | UnionAll():
                return drop_empty(plan.with_children(*map(self.part, plan.children)))
            case Join(left=left, right=right):
                return _sum(
                    drop_empty(replace(plan, left=self.part(left), right=self.state(right))),
                    drop_empty(replace(plan, left=self.state(left), right=self.part(right))),
                )
            case OuterSemiAntiJoin():
                return self._match(plan)
        raise PlanError(f"{type(plan).__name__} cannot stand above a relation of a loop")

    def _match(self, plan: OuterSemiAntiJoin) -> Operator:
        left, right = plan.left, plan.right
        state = Net(self.state(right))
        rows = drop_empty(replace(plan, left=self.part(left), right=state))
        if reads(right, self.own):
            return _sum(rows, drop_empty(self._touched(plan, self.part(right))))
        touched = drop_empty(self._touched(plan, self._outside(right)))
        return _sum(rows, drop_empty(replace(plan, left=touched, right=state)))

    def _outside(self, plan: Operator) -> Operator:
        """Return the signed change of a plan that reads nothing of the loop."""
        changed = NONE if self.found else self.changed
        return Differentiation(changed).change(plan)

    def _touched(self, plan: OuterSemiAntiJoin, moved: Operator) -> OuterSemiAntiJoin:
        """Return rows of the left side that match a changed row of the other."""
        left = self.state(plan.left)
        if not isinstance(moved, Empty):
            left = restricted(left, moved, _equal_columns(plan))
        return replace(plan, kind="semi", left=left, right=moved)

    def state(self, plan: Operator) -> Operator:
        """Return the plan over the states of this side."""
        if isinstance(plan, Scan):
            own = plan.relation in self.own
            before = self.sign == "removed" and (own or plan.relation in self.changed)
            return replace(plan, version="before" if before else "after")
        return plan.with_children(*map(self.state, plan.children))


def _equal_columns(plan: OuterSemiAntiJoin) -> dict[Column, Column]:
    """Return columns of the left side that the condition makes equal to one of the right."""
    left, right = frozenset(plan.left.columns), frozenset(plan.right.columns)
    pairs: dict[Column, Column] = {}
    for term in () if plan.condition is None else conjuncts(plan.condition):
        match term:
            case Call(function="=", arguments=(Column() as a, Column() as b)) if a.type == b.type:
                if a in left and b in right:
                    pairs[a] = b
                elif b in left and a in right:
                    pairs[b] = a
    return pairs


def _sum(*terms: Operator) -> Operator:
    return drop_empty(UnionAll(terms))


@lru_cache(maxsize=4096)
def lost(loop: Loop, variable: Variable, changed: Names, found: Names) -> Operator:
    """Return rows to delete that were not deleted yet."""
    part = OneSided("removed", loop.relations, changed, found).part(variable.body)
    return _unseen(variable, part, "lost")


@lru_cache(maxsize=4096)
def gained(loop: Loop, variable: Variable, found: Names) -> Operator:
    """Return rows that follow from those found in the round before, and are not there yet."""
    return _unseen(variable, _gained(loop, variable, NONE, found), "after")


@lru_cache(maxsize=1024)
def again(loop: Loop, variable: Variable, changed: Names, lost: Names) -> Operator:
    """Return rows derived from rows added outside, and deleted rows still derived from the rest."""
    came = _gained(loop, variable, changed, NONE)
    if variable.relation not in lost:
        return _unseen(variable, came, "after")
    whole = OneSided("added", loop.relations).state(variable.body)
    columns = tuple(replace(column, id=f"lost_{column.id}") for column in variable.body.columns)
    deleted = Scan(variable.relation, tuple(zip(variable.physical, columns, strict=True)), "lost")
    # Rows that were not deleted do no harm: what follows from them is stored, or has to be.
    derived = _near(whole, deleted, dict(zip(whole.columns, columns, strict=True)))
    return _unseen(variable, _sum(came, derived), "after")


@lru_cache(maxsize=1024)
def started(loop: Loop, variable: Variable) -> Operator:
    """Return the rows that follow without any row of the loop, from the states after."""
    rows = _without(OneSided("added", loop.relations).state(variable.body), loop.relations)
    return guard_errors(Net(rows)) if loop.levels else _unseen(variable, rows, "after")


def _gained(loop: Loop, variable: Variable, changed: Names, found: Names) -> Operator:
    return OneSided("added", loop.relations, changed, found).part(variable.body)


def _unseen(variable: Variable, rows: Operator, version: Version) -> Operator:
    if isinstance(rows, Empty):
        return rows
    columns = tuple(replace(column, id=f"known_{column.id}") for column in variable.body.columns)
    known_rows = Scan(
        variable.relation, tuple(zip(variable.physical, columns, strict=True)), version
    )
    return Unseen(guard_errors(rows), known_rows)


def _near(plan: Operator, rows: Operator, row_columns: dict[Column, Column]) -> Operator:
    """Return rows of the plan, with all that are among `rows`.

    As few other rows are read as the restrictions of its scans allow.
    """
    if isinstance(plan, UnionAll):
        return plan.with_children(*(_near(branch, rows, row_columns) for branch in plan.children))
    fewer = restricted(plan, rows, row_columns)
    return Restrict(plan, rows, tuple(row_columns.items())) if fewer == plan else fewer


def restricted(plan: Operator, rows: Operator, row_columns: dict[Column, Column]) -> Operator:
    """Return the plan with its scans restricted to rows that can contribute to one of `rows`.

    `row_columns` pairs columns of the plan with columns of `rows`; only whole rows are left out.
    """
    match plan:
        case Project(child=child, outputs=outputs):
            below = {
                scalar: row_columns[column]
                for column, scalar in outputs
                if isinstance(scalar, Column) and column in row_columns
            }
            return replace(plan, child=restricted(child, rows, below))
        case Filter(child=child) | Unnest(child=child):
            below = {a: b for a, b in row_columns.items() if a in child.columns}
            return replace(plan, child=restricted(child, rows, below))
        case UnionAll() | Join():
            children = (
                restricted(c, rows, {a: b for a, b in row_columns.items() if a in c.columns})
                for c in plan.children
            )
            return plan.with_children(*children)
        case OuterSemiAntiJoin(left=left):
            below = {a: b for a, b in row_columns.items() if a in left.columns}
            return replace(plan, left=restricted(left, rows, below))
        case Scan() if row_columns:
            return Restrict(plan, rows, tuple(row_columns.items()))
        case _:
            return plan


@lru_cache(maxsize=1024)
def carried(loop: Loop, variable: Variable) -> Operator:
    """Return, over levels, the signed rows of the next level that follow from those found."""
    plan = OneSided("added", loop.relations, NONE, loop.relations).part(variable.body)
    return guard_errors(Net(plan))


@lru_cache(maxsize=1024)
def moved(variable: Variable, changed: Names) -> Operator:
    """Return, over levels, the change of a level by a change outside, the level before unchanged.

    The loop's own relation has not changed yet: its version "after" is what is stored.
    """
    return guard_errors(Net(Differentiation(changed).change(variable.body)))


def _without(plan: Operator, relations: Names) -> Operator:
    """Return the plan with no rows in these relations."""
    if isinstance(plan, Scan):
        return Empty(plan.columns) if plan.relation in relations else plan
    return drop_empty(plan.with_children(*(_without(c, relations) for c in plan.children)))


def rounds(loop: Loop, variable: Variable, changed: Names) -> dict[str, Operator]:
    """Return the plans that maintain a variable under a change, by the rows that they find.

    Empty plans are left out.
    """
    outside = changed - loop.relations
    plans = (
        {"moved": moved(variable, outside), "carried": carried(loop, variable)}
        if loop.levels
        else {
            "lost": lost(loop, variable, outside, NONE),
            "lost by those": lost(loop, variable, outside, loop.relations),
            "again": again(loop, variable, outside, loop.relations),
            "gained by those": gained(loop, variable, loop.relations),
        }
    )
    return {name: plan for name, plan in plans.items() if not isinstance(plan, Empty)}
