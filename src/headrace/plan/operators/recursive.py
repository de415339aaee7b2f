"""Recursive: WITH RECURSIVE.    R₀ = base,  Rₙ₊₁ = step(Rₙ),  the sum of all

A level is computed from the level before alone, as PostgreSQL does it. With `once` a row that some
level had before is left out of the next. The levels end with one that is empty, the first aside:
the step is evaluated once even if the base has no rows.

It is stateful: its stage is a loop, whose rules stand in `delta/loop.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headrace.algebra.operator import Operator, PlanError
from headrace.algebra.scalar import Column


@dataclass(frozen=True)
class Recursive(Operator):
    """Rows of `base`, of `step` over these, of `step` over those, and so on.

    `step` reads the rows of the level before by a Scan of the relation `variable`, whose physical
    columns are c1, c2, … in the order of `outputs`. Both inputs give these columns by position.
    """

    variable: str
    outputs: tuple[Column, ...]
    base: Operator
    step: Operator
    once: bool

    def __post_init__(self) -> None:
        output_types = [column.type for column in self.outputs]
        for child in self.children:
            if [column.type for column in child.columns] != output_types:
                raise PlanError(f"Recursive of {child.columns}, not {self.outputs}")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.outputs

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.base, self.step)

    def with_children(self, *children: Operator) -> Recursive:
        base, step = children
        return replace(self, base=base, step=step)
