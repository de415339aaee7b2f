"""Part and Unseen: what the rounds of a loop put around changes and rows found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from headrace.algebra.operator import Operator, PlanError, Unary
from headrace.algebra.scalar import Column

Sign = Literal["added", "removed"]


@dataclass(frozen=True)
class Part(Unary):
    """The rows of `child`, which is net, that a change adds or removes, their weights positive."""

    sign: Sign

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@dataclass(frozen=True)
class Unseen(Operator):
    """Every row of `found` once that `known` does not have; NULLs are equal.

    A side has a row if its weights there sum up to more than zero.
    """

    found: Operator
    known: Operator

    def __post_init__(self) -> None:
        types = [[column.type for column in child.columns] for child in self.children]
        if types[0] != types[1]:
            raise PlanError(f"Unseen of different columns: {types}")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.found.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.found, self.known)

    def with_children(self, *children: Operator) -> Unseen:
        found_plan, known_plan = children
        return replace(self, found=found_plan, known=known_plan)
