"""Filter: rows for which a condition is true.    d σ(R) = σ(dR)"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.algebra.operator import Delta, Operator, PlanError, Unary, require_columns
from headrace.algebra.scalar import Column, Scalar, columns_of
from headrace.types import BOOLEAN


@dataclass(frozen=True)
class Filter(Unary):
    """The rows of `child` for which `condition` is true (not false, not NULL)."""

    condition: Scalar

    def __post_init__(self) -> None:
        if self.condition.type != BOOLEAN:
            raise PlanError(f"a filter's condition is {self.condition.type.sql}, not boolean")
        require_columns(columns_of(self.condition), self.child.column_set, "Filter")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (self.condition,)

    def with_scalars(self, scalars: tuple[Scalar, ...]) -> Filter:
        (condition,) = scalars
        return replace(self, condition=condition)

    def delta(self, of: Delta) -> Operator:
        return replace(self, child=of.change(self.child))
