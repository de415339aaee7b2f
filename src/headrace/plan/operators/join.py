"""Join: inner or cross, on any condition.    d(L⋈R) = dL⋈R⁺ + L⁻⋈dR"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.plan.operators.operator import Delta, Operator, PlanError, require_columns
from headrace.plan.operators.union_all import UnionAll
from headrace.plan.scalar import Column, Scalar, columns_of
from headrace.types import BOOLEAN


@dataclass(frozen=True)
class Join(Operator):
    """Pairs of rows for which `condition` is true; weights multiply. No condition: all pairs."""

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
            require_columns(columns_of(self.condition), self.columns, "Join")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_children(self, *children: Operator) -> Join:
        left, right = children
        return replace(self, left=left, right=right)

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return () if self.condition is None else (self.condition,)

    def with_scalars(self, scalars: tuple[Scalar, ...]) -> Join:
        return replace(self, condition=scalars[0]) if scalars else self

    def delta(self, of: Delta) -> Operator:
        return UnionAll(
            (
                replace(self, left=of.change(self.left), right=of.after(self.right)),
                replace(self, left=of.before(self.left), right=of.change(self.right)),
            )
        )
