"""OuterSemiAntiJoin: left, semi and anti joins.    d(L op R) = (dL + T) op R⁺ − T op R⁻

T are the rows of L⁻ that match some row of dR: for all others nothing changes. The join is linear
in the side that it preserves, on any condition; the other side's rows must each be there, so a
state of it is netted.

The change is an operator of its own, OuterSemiAntiJoinDelta, which has each input once. Written out
as a sum it has T twice, with all that stands below, and joins beside joins would grow beyond
measure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from headrace.algebra.operator import Binary, Conditional, Delta, Operator, PlanError
from headrace.algebra.scalar import Column, Scalar
from headrace.plan.operators.net import Net
from headrace.plan.operators.union_all import Empty, Negate, UnionAll

Matching = Literal["left", "semi", "anti"]


@dataclass(frozen=True)
class OuterSemiAntiJoin(Binary):
    """Rows of `left` by whether a row of `right` matches: `condition` is true, or there is none.

    | kind | rows |
    |---|---|
    | left | pairs that match, weights multiplied; without a match the row padded with NULLs |
    | semi | rows of `left` with a match, each with its own weight |
    | anti | rows of `left` without a match |
    """

    kind: Matching
    condition: Scalar | None = None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + (self.right.columns if self.kind == "left" else ())

    def delta(self, of: Delta) -> Operator:
        changed, moved = of.change(self.left), of.change(self.right)
        after = of.after(self.right)
        if isinstance(moved, Empty):
            return replace(self, left=changed, right=after)
        touched = replace(self, kind="semi", left=of.before(self.left), right=moved)
        before = of.before(self.right)
        return OuterSemiAntiJoinDelta(changed, touched, before, after, self.kind, self.condition)


@dataclass(frozen=True)
class OuterSemiAntiJoinDelta(Conditional):
    """The change of OuterSemiAntiJoin: (`change` + `touched`) op `after` − `touched` op `before`.

    `change` is that of the preserved side, `touched` the rows of it before that match some changed
    row of the other side, whose states are raw or netted.
    """

    change: Operator
    touched: Operator
    before: Operator
    after: Operator
    kind: Matching
    condition: Scalar | None = None

    def __post_init__(self) -> None:
        for left, right in ((self.change, self.touched), (self.before, self.after)):
            if left.columns != right.columns:
                raise PlanError(
                    f"OuterSemiAntiJoinDelta of different columns: {left.columns}, {right.columns}"
                )

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.touched.columns + (self.after.columns if self.kind == "left" else ())

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.change, self.touched, self.before, self.after)

    def with_children(self, *children: Operator) -> OuterSemiAntiJoinDelta:
        change, touched, before, after = children
        return replace(self, change=change, touched=touched, before=before, after=after)

    def written_out(self) -> Operator:
        """Return the definition of the delta, as a sum of joins."""
        now = UnionAll((self.change, self.touched))
        return UnionAll(
            (
                OuterSemiAntiJoin(now, Net(self.after), self.kind, self.condition),
                Negate(
                    OuterSemiAntiJoin(self.touched, Net(self.before), self.kind, self.condition)
                ),
            )
        )
