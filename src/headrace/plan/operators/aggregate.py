"""Aggregate and its two maintained forms, Accumulate and Merge.

Aggregate is what a query says. A stage keeps, for each group, the number of its rows, sums
Σ weight · term and extrema of terms (`GroupState`); Accumulate computes them from rows, Merge adds
a change to them:

    Merge:  for every touched group   − old row  + new row,   new = old + Σ change
            a group whose row count is 0 has no row; the one group without keys always has

    an extremum o, with the best inserted value i and the best deleted value d of the change:

    | d | i | new extremum |
    |---|---|---|
    | none, or worse than o | any | the better of o and i |
    | o | as good as o, or better | i |
    | o | none, or worse | NULL if no value is left, else the group is stale |

A stale group has lost its extremum, and only its rows can tell the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from headrace.plan.operators.operator import Operator, PlanError, Unary, require_columns
from headrace.plan.scalar import Column, Scalar, columns_of
from headrace.types import BOOLEAN

STALE = Column("stale", BOOLEAN)


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate function over a column of the child (None for COUNT(*))."""

    output: Column
    function: str
    argument: Column | None = None


@dataclass(frozen=True)
class Aggregate(Unary):
    """GROUP BY `keys` (columns of the child, NULLs equal) with `calls`; no keys is one group."""

    keys: tuple[Column, ...]
    calls: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        arguments = {call.argument for call in self.calls if call.argument is not None}
        require_columns(frozenset(self.keys) | arguments, self.child.columns, "Aggregate")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.keys + tuple(call.output for call in self.calls)


@dataclass(frozen=True)
class Extremum:
    """The least or greatest value of `term` in a group; `present` counts the values, not NULLs."""

    column: Column
    kept: Literal["min", "max"]
    term: Scalar
    present: Column


@dataclass(frozen=True)
class GroupState:
    """What is kept of a group: its key, its row count, sums of weight · term, and extrema.

    `keys` and `sums` pair a column of the state with what it is computed from: a column, or a
    term, of the rows that are grouped.
    """

    keys: tuple[tuple[Column, Column], ...]
    rows: Column
    sums: tuple[tuple[Column, Scalar], ...]
    extrema: tuple[Extremum, ...] = ()

    @property
    def key_columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.keys)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.key_columns, *self.totals, *(each.column for each in self.extrema))

    @property
    def totals(self) -> tuple[Column, ...]:
        """The columns that a change adds to: the row count and the sums."""
        return (self.rows, *(column for column, _ in self.sums))

    @property
    def read(self) -> frozenset[Column]:
        """The columns of the rows that are grouped."""
        all_terms = (*(term for _, term in self.sums), *(each.term for each in self.extrema))
        terms = frozenset[Column]().union(*map(columns_of, all_terms))
        return terms | frozenset(key for _, key in self.keys)


@dataclass(frozen=True)
class Accumulate(Unary):
    """The state of every group of `child`, each with weight 1.

    Where there are extrema, the rows of `child` are netted: each is there.
    """

    state: GroupState

    def __post_init__(self) -> None:
        require_columns(self.state.read, self.child.columns, "Accumulate")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.state.columns


@dataclass(frozen=True)
class Merge(Operator):
    """The change of a stored Accumulate: −old +new for every group that a change moves.

    Where there are extrema, both inputs are netted, so that a row with a positive weight is there,
    and the last column says which groups are stale; their new rows mean nothing.
    """

    stored: Operator
    change: Operator
    state: GroupState

    def __post_init__(self) -> None:
        if self.stored.columns != self.state.columns:
            raise PlanError("Merge needs the stored state's own columns")
        require_columns(self.state.read, self.change.columns, "Merge")

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.state.columns, STALE) if self.state.extrema else self.state.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.stored, self.change)

    def with_children(self, *children: Operator) -> Merge:
        stored, change = children
        return replace(self, stored=stored, change=change)
