"""Net and Restrict: what a delta plan puts around logs; a query's own plan has neither."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.algebra.operator import Operator, Unary, require_columns
from headrace.algebra.scalar import Column


@dataclass(frozen=True)
class Net(Unary):
    """One row for each distinct row, its weights summed, those that sum to zero dropped."""

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@dataclass(frozen=True)
class Restrict(Operator):
    """The rows of `child` whose `keys` occur in `touched`, compared null-safe; weights are kept.

    `keys` pairs a column of the child with one of `touched`, whose weights do not matter.
    """

    child: Operator
    touched: Operator
    keys: tuple[tuple[Column, Column], ...]

    def __post_init__(self) -> None:
        require_columns(frozenset(a for a, _ in self.keys), self.child.column_set, "Restrict")
        require_columns(frozenset(b for _, b in self.keys), self.touched.column_set, "Restrict")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child, self.touched)

    def with_children(self, *children: Operator) -> Restrict:
        child, touched = children
        return replace(self, child=child, touched=touched)
