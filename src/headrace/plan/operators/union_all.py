"""UnionAll, Negate and Empty: sums of bags.    d(A+B) = dA+dB,  d(−A) = −dA,  d∅ = ∅"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_

from headrace.algebra.operator import Delta, Operator, PlanError, Unary
from headrace.algebra.scalar import Column


@dataclass(frozen=True)
class UnionAll(Operator):
    """The sum of its inputs, which have the same columns in the same order."""

    inputs: tuple[Operator, ...]

    def __post_init__(self) -> None:
        first = self.inputs[0].columns
        for child in self.inputs[1:]:
            if child.columns != first:
                raise PlanError(f"UnionAll of different columns: {first} and {child.columns}")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.inputs[0].columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return self.inputs

    def with_children(self, *children: Operator) -> UnionAll:
        same = len(children) == len(self.inputs) and all(map(is_, children, self.inputs))
        return self if same else replace(self, inputs=children)

    def delta(self, of: Delta) -> Operator:
        return replace(self, inputs=tuple(of.change(child) for child in self.inputs))


@dataclass(frozen=True)
class Negate(Unary):
    """The same rows with the sign of every weight turned."""

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    def delta(self, of: Delta) -> Operator:
        return replace(self, child=of.change(self.child))


@dataclass(frozen=True)
class Empty(Operator):
    """No rows."""

    fields: tuple[Column, ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.fields

    @property
    def children(self) -> tuple[Operator, ...]:
        return ()

    def with_children(self, *children: Operator) -> Empty:
        assert not children
        return self

    def delta(self, of: Delta) -> Operator:
        return self
