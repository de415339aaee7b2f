"""Aggregate and its two maintained forms, Accumulate and Merge.

Aggregate is what a query says. A stage keeps, for each group, the number of its rows, sums
Σ weight · term, extrema of terms, and the results of calls that need all rows of the group
(`GroupState`). Accumulate computes them from rows; where there are no such calls, Merge adds a
change to them:

    Merge:  for every touched group   − old row  + new row,   new = old + Σ change
            a group whose row count is 0 has no row; the one group without keys always has

    an extremum o, with the best inserted value i and the best deleted value d of the change:

    | d | i | new extremum |
    |---|---|---|
    | none, or worse than o | any | the better of o and i |
    | o | as good as o, or better | i |
    | o | none, or worse | NULL if no value is left, else the group is stale |

A stale group has lost its extremum, and only its rows determine the next one. Where rows only came,
no d is there and no group can be stale: such a Merge `grows`, and looks for neither.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from headrace.algebra.operator import Operator, PlanError, Unary, require_columns
from headrace.algebra.scalar import Column, Scalar, columns_of
from headrace.algebra.window_call import SortKey
from headrace.types import BOOLEAN

STALE = Column("stale", BOOLEAN)


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate function over columns of the child (none for COUNT(*)).

    `further` are the arguments after the first. `distinct` takes equal arguments once; `order` says
    in which order the rows come, where that counts, and leaves only equal rows undecided. `only`
    is a boolean column that says which rows count.
    """

    output: Column
    function: str
    argument: Column | None = None
    further: tuple[Column, ...] = ()
    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    only: Column | None = None

    @property
    def arguments(self) -> tuple[Column, ...]:
        return () if self.argument is None else (self.argument, *self.further)

    @property
    def read(self) -> frozenset[Column]:
        """The columns of the child that the call reads."""
        filters = () if self.only is None else (self.only,)
        return frozenset((*self.arguments, *(key.column for key in self.order), *filters))


@dataclass(frozen=True)
class Aggregate(Unary):
    """GROUP BY `keys` (columns of the child, NULLs equal) with `calls`; no keys is one group."""

    keys: tuple[Column, ...]
    calls: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        read = frozenset(self.keys).union(*(call.read for call in self.calls))
        require_columns(read, self.child.column_set, "Aggregate")

    @cached_property
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
    """The stored state of a group: its key, its row count, sums of weight · term, extrema, results.

    `keys` and `sums` pair a column of the state with what it is computed from: a column, or a
    term, of the rows that are grouped. `calls` are computed from all rows of the group.
    """

    keys: tuple[tuple[Column, Column], ...]
    rows: Column
    sums: tuple[tuple[Column, Scalar], ...]
    extrema: tuple[Extremum, ...] = ()
    calls: tuple[AggregateCall, ...] = ()

    @property
    def key_columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.keys)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        extrema = (each.column for each in self.extrema)
        return (*self.key_columns, *self.totals, *extrema, *(call.output for call in self.calls))

    @property
    def totals(self) -> tuple[Column, ...]:
        """The columns that a change adds to: the row count and the sums."""
        return (self.rows, *(column for column, _ in self.sums))

    @property
    def read(self) -> frozenset[Column]:
        """The columns of the rows that are grouped."""
        all_terms = (*(term for _, term in self.sums), *(each.term for each in self.extrema))
        terms = frozenset[Column]().union(*map(columns_of, all_terms))
        terms = terms.union(*(call.read for call in self.calls))
        return terms | frozenset(key for _, key in self.keys)


@dataclass(frozen=True)
class Accumulate(Unary):
    """The state of every group of `child`, each with weight 1.

    Where there are extrema or calls, the rows of `child` are netted: each is there.
    """

    state: GroupState

    def __post_init__(self) -> None:
        require_columns(self.state.read, self.child.column_set, "Accumulate")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.state.columns


@dataclass(frozen=True)
class Merge(Operator):
    """The change of a stored Accumulate: −old +new for every group that a change moves.

    Where there are extrema, both inputs are netted, so that a row with a positive weight is there,
    and the last column says which groups are stale; their new rows mean nothing. One that `grows`
    has no such column: its change has no row with a negative weight.
    """

    stored: Operator
    change: Operator
    state: GroupState
    grows: bool = False

    def __post_init__(self) -> None:
        if self.state.calls:
            raise PlanError("Merge cannot add to the results of calls")
        if self.stored.columns != self.state.columns:
            raise PlanError("Merge needs the stored state's own columns")
        require_columns(self.state.read, self.change.column_set, "Merge")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        marked = self.state.extrema and not self.grows
        return (*self.state.columns, STALE) if marked else self.state.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.stored, self.change)

    def with_children(self, *children: Operator) -> Merge:
        stored, change = children
        return replace(self, stored=stored, change=change)
