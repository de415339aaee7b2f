"""Lateral: an inner query for every row. Lowering takes it away, so it has no rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.algebra.operator import PlanError, Unary, require_columns
from headrace.algebra.scalar import Column, Scalar, Subquery, columns_of


@dataclass(frozen=True)
class Lateral(Unary):
    """Every row of `child` beside the rows of the inner query for it that meet `condition`.

    With `keep` a row without any is kept, padded with NULLs.
    """

    rows: Subquery
    condition: Scalar | None = None
    keep: bool = False

    def __post_init__(self) -> None:
        if self.rows.kind != "rows":
            raise PlanError(f"Lateral takes rows, not {self.rows.kind}")
        require_columns(columns_of(self.rows), self.child.column_set, "Lateral")
        if self.condition is not None:
            require_columns(columns_of(self.condition), self.column_set, "Lateral")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns + self.rows.plan.columns

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (self.rows,) if self.condition is None else (self.rows, self.condition)

    def with_scalars(self, scalars: tuple[Scalar, ...]) -> Lateral:
        rows, *condition = scalars
        assert isinstance(rows, Subquery)
        return replace(self, rows=rows, condition=condition[0] if condition else None)
