"""FullJoin: the rows of both sides.    L ⟗ R = (L ⟕ R) + (R ▷ L, padded), and so is its change"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from headrace.algebra.operator import Binary, Delta, Operator
from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.plan.operators.outer_semi_anti_join import OuterSemiAntiJoin
from headrace.plan.operators.project import Project
from headrace.plan.operators.union_all import UnionAll


@dataclass(frozen=True)
class FullJoin(Binary):
    """Pairs for which `condition` is true, and the other rows of both sides padded with NULLs."""

    condition: Scalar | None = None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns

    def divided(self) -> UnionAll:
        """Return an equal plan of a left join and an anti join. Both sides occur twice."""
        unmatched = OuterSemiAntiJoin(self.right, self.left, "anti", self.condition)
        padding = tuple((column, Literal(None, column.type)) for column in self.left.columns)
        right_outputs = tuple((column, column) for column in self.right.columns)
        return UnionAll(
            (
                OuterSemiAntiJoin(self.left, self.right, "left", self.condition),
                Project(unmatched, (*padding, *right_outputs)),
            )
        )

    def delta(self, of: Delta) -> Operator:
        return of.change(self.divided())
