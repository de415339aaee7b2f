"""Values: rows that the query itself spells out.    d Values = ∅"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.algebra.operator import Delta, Operator, PlanError, require_columns
from headrace.algebra.scalar import Column, Scalar, columns_of
from headrace.plan.operators.union_all import Empty


@dataclass(frozen=True)
class Values(Operator):
    """The rows of constant expressions, each with weight 1; one row without columns is SELECT's
    own where there is no FROM."""

    fields: tuple[Column, ...]
    rows: tuple[tuple[Scalar, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if tuple(scalar.type for scalar in row) != tuple(column.type for column in self.fields):
                raise PlanError(f"a row of Values does not fit {self.fields}")
            for scalar in row:
                require_columns(columns_of(scalar), frozenset(), "Values")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.fields

    @property
    def children(self) -> tuple[Operator, ...]:
        return ()

    def with_children(self, *children: Operator) -> Values:
        assert not children
        return self

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return tuple(scalar for row in self.rows for scalar in row)

    def with_scalars(self, scalars: tuple[Scalar, ...]) -> Values:
        width = len(self.fields)
        rows = tuple(scalars[i * width : (i + 1) * width] for i in range(len(self.rows)))
        return replace(self, rows=rows)

    def delta(self, of: Delta) -> Operator:
        return Empty(self.fields)
