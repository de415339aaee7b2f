"""Calls of window functions: their order, their frame, and what they read. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from headrace.algebra.scalar import Column, Literal


@dataclass(frozen=True)
class SortKey:
    """One column to sort by."""

    column: Column
    descending: bool = False
    nulls_first: bool = False


BoundKind = OneOf[
    "unbounded preceding", "preceding", "current row", "following", "unbounded following"
]


@dataclass(frozen=True)
class FrameBound:
    """Where a frame begins or ends; `offset` is a constant, for preceding and following."""

    kind: BoundKind
    offset: Literal | None = None


Exclusion = OneOf["no others", "current row", "group", "ties"]


@dataclass(frozen=True)
class Frame:
    """The rows of a partition that a call sees.

    Rows count one by one in mode rows, together with their peers in groups; in mode range a bound
    with an offset is a distance from the value of the one sort key.
    """

    mode: OneOf["rows", "range", "groups"]
    start: FrameBound
    end: FrameBound
    exclude: Exclusion = "no others"


WHOLE = Frame("rows", FrameBound("unbounded preceding"), FrameBound("unbounded following"))
"""The whole partition."""


@dataclass(frozen=True)
class WindowCall:
    """A function of `headrace.functions.windows`; `frame` is None where it has no say.

    Rows are peers if they are equal in `order`; `ties` says which of them comes first, where that
    matters: together they leave only equal rows undecided. `number` is the constant that some
    functions take: an offset, a place, a number of buckets.
    """

    output: Column
    function: str
    arguments: tuple[Column, ...] = ()
    order: tuple[SortKey, ...] = ()
    ties: tuple[SortKey, ...] = ()
    frame: Frame | None = None
    number: int | None = None

    @property
    def read(self) -> frozenset[Column]:
        return frozenset((*self.arguments, *(key.column for key in (*self.order, *self.ties))))
