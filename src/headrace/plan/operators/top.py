"""Top: the first rows of every group in an order. Stateful: its stage has the rule.

d Top(R) = Top(R⁺ restricted to touched groups) − what is stored of these

Without an offset, the stored rows mostly determine the new first rows, and `TopMerge` returns the
change:

| stored rows of the group | known after a change | new first rows |
|---|---|---|
| fewer than `limit` | all rows: the stored ones and the change | the first of these |
| `limit` or more | all rows up to the last stored one | the first of these; if too few, stale |

A stale group has lost first rows, and only its other rows determine the next ones. Of the last
stored row there may be more copies than are stored, but never fewer. Where rows only came, a group
that was full stays full: such a TopMerge `grows`, and looks for no stale one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.algebra.operator import Operator, PlanError, Unary, require_columns
from headrace.algebra.scalar import Column
from headrace.algebra.window_call import SortKey
from headrace.plan.operators.aggregate import STALE


@dataclass(frozen=True)
class Top(Unary):
    """Of the rows of `child` with equal `keys`, those after the first `offset`, at most `limit`.

    Rows count as often as their weights say. They are sorted by `order`, then by `ties`: together
    these leave only equal rows undecided. `with_ties` takes the rows that equal the last one in
    `order` as well. `limit` None takes all.
    """

    keys: tuple[Column, ...]
    order: tuple[SortKey, ...]
    ties: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    with_ties: bool = False

    def __post_init__(self) -> None:
        if (self.limit is not None and self.limit < 0) or self.offset < 0:
            raise PlanError(f"Top of {self.limit} rows after {self.offset}")
        require_columns(self.read, self.child.column_set, "Top")

    @property
    def read(self) -> frozenset[Column]:
        return frozenset(self.keys) | {key.column for key in (*self.order, *self.ties)}

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def is_merged(self) -> bool:
        """Whether the stored rows determine the first rows after a change."""
        return self.limit is not None and not self.offset


@dataclass(frozen=True)
class TopMerge(Operator):
    """The change of a stored Top without an offset, from its rows and the change of its input.

    Both are netted. The last column says which groups are stale: their rows say nothing else. One
    that `grows` has no such column: its change has no row with a negative weight.
    """

    stored: Operator
    change: Operator
    keys: tuple[Column, ...]
    order: tuple[SortKey, ...]
    ties: tuple[SortKey, ...]
    limit: int
    with_ties: bool = False
    grows: bool = False

    def __post_init__(self) -> None:
        if self.stored.columns != self.change.columns:
            raise PlanError("TopMerge needs the columns of the change in what is stored")
        read = frozenset(self.keys) | {key.column for key in (*self.order, *self.ties)}
        require_columns(read, self.stored.column_set, "TopMerge")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.stored.columns if self.grows else (*self.stored.columns, STALE)

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.stored, self.change)

    def with_children(self, *children: Operator) -> TopMerge:
        stored, change = children
        return replace(self, stored=stored, change=change)
