"""New columns for a plan that is being lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headrace.algebra.scalar import Column, Scalar
from headrace.functions import call, chain
from headrace.plan.operators import Aggregate, Operator, Project
from headrace.types import Type

Fresh = Callable[[str, Type], Column]
"""Gives a column that the plan does not have yet, from a name for people and its type."""


def conjunction(terms: Iterable[Scalar]) -> Scalar | None:
    """All of the terms, or None for no condition at all."""
    found = tuple(terms)
    return chain("and", found) if found else None


def same(left: Iterable[Scalar], right: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """Pairwise equality in which NULLs are equal, as identity needs it."""
    return tuple(call("is not distinct from", a, b) for a, b in zip(left, right, strict=True))


def keep(plan: Operator, columns: Iterable[Column]) -> Operator:
    """The plan with exactly these of its columns."""
    wanted = tuple(columns)
    if plan.columns == wanted:
        return plan
    return Project(plan, tuple((column, column) for column in wanted))


def distinct(plan: Operator) -> Operator:
    return Aggregate(plan, plan.columns, ())
