"""FullJoin: the rows of both sides.    L ⟗ R = (L ⟕ R) + (R ▷ L, padded), and so is its change"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.plan.operators.match_join import MatchJoin
from headrace.plan.operators.operator import Delta, Operator, PlanError, require_columns
from headrace.plan.operators.project import Project
from headrace.plan.operators.union_all import UnionAll
from headrace.plan.scalar import Column, Literal, Scalar, columns_of
from headrace.types import BOOLEAN


@dataclass(frozen=True)
class FullJoin(Operator):
    """Pairs for which `condition` is true, and the other rows of both sides padded with NULLs."""

    left: Operator
    right: Operator
    condition: Scalar | None = None

    def __post_init__(self) -> None:
        both = frozenset(self.left.columns) & frozenset(self.right.columns)
        if both:
            raise PlanError(f"both sides of a join have {sorted(column.id for column in both)}")
        if self.condition is not None:
            if self.condition.type != BOOLEAN:
                raise PlanError(f"a join's condition is {self.condition.type.sql}, not boolean")
            require_columns(columns_of(self.condition), self.columns, "FullJoin")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_children(self, *children: Operator) -> FullJoin:
        left, right = children
        return replace(self, left=left, right=right)

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return () if self.condition is None else (self.condition,)

    def with_scalars(self, scalars: tuple[Scalar, ...]) -> FullJoin:
        return replace(self, condition=scalars[0]) if scalars else self

    def divided(self) -> UnionAll:
        """The same rows as a left join and an anti join. Both sides occur twice."""
        unmatched = MatchJoin(self.right, self.left, "anti", self.condition)
        padding = tuple((column, Literal(None, column.type)) for column in self.left.columns)
        kept = tuple((column, column) for column in self.right.columns)
        return UnionAll(
            (
                MatchJoin(self.left, self.right, "left", self.condition),
                Project(unmatched, (*padding, *kept)),
            )
        )

    def delta(self, of: Delta) -> Operator:
        return of.change(self.divided())
