"""SetOperation: EXCEPT and INTERSECT. Lowering takes them away, so they have no rule.

With l equal rows on the left and r on the right, NULLs taken as equal:

| query | rows |
|---|---|
| A INTERSECT ALL B | the lesser of l and r |
| A INTERSECT B | one if l > 0 and r > 0 |
| A EXCEPT ALL B | l − r if that is positive |
| A EXCEPT B | one if l > 0 and r = 0 |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from headrace.algebra.operator import Operator, PlanError
from headrace.algebra.scalar import Column


@dataclass(frozen=True)
class SetOperation(Operator):
    """Rows of `left` that `right`, which has the same columns, has too or has not.

    With `once` equal rows count once.
    """

    left: Operator
    right: Operator
    kind: Literal["except", "intersect"]
    once: bool

    def __post_init__(self) -> None:
        if self.left.columns != self.right.columns:
            raise PlanError(
                f"{self.kind} of different columns: {self.left.columns} and {self.right.columns}"
            )

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_children(self, *children: Operator) -> SetOperation:
        left, right = children
        return replace(self, left=left, right=right)
