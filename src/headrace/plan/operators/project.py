"""Project: new columns computed row by row.    d π(R) = π(dR)"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.algebra.operator import Delta, Operator, PlanError, Unary, require_columns
from headrace.algebra.scalar import Column, Scalar, columns_of


@dataclass(frozen=True)
class Project(Unary):
    """One output column for each pair (column, scalar over the child's columns)."""

    outputs: tuple[tuple[Column, Scalar], ...]

    def __post_init__(self) -> None:
        for column, scalar in self.outputs:
            if column.type != scalar.type:
                raise PlanError(f"{column.id} is {column.type}, its expression {scalar.type}")
            read = frozenset((scalar,)) if isinstance(scalar, Column) else columns_of(scalar)
            require_columns(read, self.child.column_set, f"Project of {column.id}")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.outputs)

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return tuple(scalar for _, scalar in self.outputs)

    def with_scalars(self, scalars: tuple[Scalar, ...]) -> Project:
        columns = (column for column, _ in self.outputs)
        return replace(self, outputs=tuple(zip(columns, scalars, strict=True)))

    def delta(self, of: Delta) -> Operator:
        return replace(self, child=of.change(self.child))
