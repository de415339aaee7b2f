"""The base of every operator: a frozen node with derived columns and one delta rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

from headrace.algebra.scalar import Column, Scalar, columns_of
from headrace.types import BOOLEAN


class Delta(Protocol):
    """Three questions of any subtree over one refresh: its change, its state before and after."""

    def change(self, of: Operator) -> Operator: ...

    def before(self, of: Operator) -> Operator: ...

    def after(self, of: Operator) -> Operator: ...


@dataclass(frozen=True)
class Operator(ABC):
    """A node of a plan: a bag of rows with signed weights."""

    # Derived from the fields of a node that never changes: computed once, however often it is read.
    @cached_property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The output columns, in order."""

    @cached_property
    def column_set(self) -> frozenset[Column]:
        """The output columns."""
        return frozenset(self.columns)

    @property
    @abstractmethod
    def children(self) -> tuple[Operator, ...]:
        """The inputs, in order."""

    @abstractmethod
    def with_children(self, *children: Operator) -> Operator:
        """Return the node over other inputs."""

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """The expressions that the node itself evaluates, in order."""
        return ()

    def with_scalars(self, scalars: tuple[Scalar, ...]) -> Operator:
        """Return the node with other expressions of the same types."""
        assert not scalars
        return self

    def delta(self, of: Delta) -> Operator:
        """Return the node's change, built from the answers of `of` about its children."""
        raise TypeError(f"{type(self).__name__} is stateful: its stage has the rule")


@dataclass(frozen=True)
class Unary(Operator):
    """A node over one input."""

    child: Operator

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)

    def with_children(self, *children: Operator) -> Operator:
        (child,) = children
        return self if child is self.child else replace(self, child=child)


class Conditional(Operator):
    """A node with one expression, `condition`, which each subclass has as its last field.

    None holds for every pair of rows.
    """

    condition: Scalar | None

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return () if self.condition is None else (self.condition,)

    def with_scalars(self, scalars: tuple[Scalar, ...]) -> Self:
        # By name: the field belongs to the subclass, so `replace` is not known to take it here.
        fields = dict.fromkeys(("condition",), scalars[0]) if scalars else {}
        return replace(self, **fields)


@dataclass(frozen=True)
class Binary(Conditional):
    """A node over two inputs without a column in common, and a condition over both."""

    left: Operator
    right: Operator

    def __post_init__(self) -> None:
        both = self.left.column_set & self.right.column_set
        if both:
            raise PlanError(f"both sides of a join have {sorted(column.id for column in both)}")
        if self.condition is not None:
            if self.condition.type != BOOLEAN:
                raise PlanError(f"a join's condition is {self.condition.type.sql}, not boolean")
            sides = self.left.column_set | self.right.column_set
            require_columns(columns_of(self.condition), sides, type(self).__name__)

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_children(self, *children: Operator) -> Self:
        left, right = children
        same = left is self.left and right is self.right
        return self if same else replace(self, left=left, right=right)


class PlanError(ValueError):
    """A node that cannot be built: the message names the offending value."""


def require_columns(columns: frozenset[Column], available: frozenset[Column], where: str) -> None:
    """Raise PlanError if a node reads columns that its input does not have."""
    missing = columns - available
    if missing:
        raise PlanError(f"{where} reads unknown columns {sorted(c.id for c in missing)}")
