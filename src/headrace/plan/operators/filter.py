"""Filter: rows for which a condition is true.    d σ(R) = σ(dR)"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.plan.operators.operator import Delta, Operator, PlanError, require_columns
from headrace.plan.scalar import Column, Scalar, columns_of
from headrace.types import BOOLEAN


@dataclass(frozen=True)
class Filter(Operator):
    """The rows of `child` for which `condition` is true (not false, not NULL)."""

    child: Operator
    condition: Scalar

    def __post_init__(self) -> None:
        if self.condition.type != BOOLEAN:
            raise PlanError(f"a filter's condition is {self.condition.type.sql}, not boolean")
        require_columns(columns_of(self.condition), self.child.columns, "Filter")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)

    def with_children(self, *children: Operator) -> Filter:
        (child,) = children
        return replace(self, child=child)

    def delta(self, of: Delta) -> Operator:
        return replace(self, child=of.change(self.child))
