"""Replicate: every row as often as an expression says.    d Replicate(R) = Replicate(dR)"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.algebra.operator import Delta, Operator, PlanError, Unary, require_columns
from headrace.algebra.scalar import Column, Scalar, columns_of
from headrace.types import BIGINT


@dataclass(frozen=True)
class Replicate(Unary):
    """The rows of `child` with their weights multiplied by `times`, which is never negative."""

    times: Scalar

    def __post_init__(self) -> None:
        if self.times.type != BIGINT:
            raise PlanError(f"a row is replicated {self.times.type.sql} times, not bigint")
        require_columns(columns_of(self.times), self.child.column_set, "Replicate")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (self.times,)

    def with_scalars(self, scalars: tuple[Scalar, ...]) -> Replicate:
        (times,) = scalars
        return replace(self, times=times)

    def delta(self, of: Delta) -> Operator:
        return replace(self, child=of.change(self.child))
