"""Operators of SQL that lowering replaces: Lateral, EXCEPT and INTERSECT. They have no delta rule.

EXCEPT and INTERSECT, with l equal rows on the left and r on the right, NULLs taken as equal:

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

from headrace.algebra.operator import Operator, PlanError, Unary, require_columns
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
