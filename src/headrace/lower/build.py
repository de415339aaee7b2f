"""Plans that lowering builds: new columns, aggregates of no rows, VALUES as a union."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.functions import call, chain
from headrace.plan.operators import Aggregate, AggregateCall, Operator, Project, Values
from headrace.types import BIGINT, Type

COUNTS = frozenset({"count", "regr_count"})


def on_empty_input(aggregate: AggregateCall) -> Scalar:
    """Return the call's result after a left join.

    A count is 0 where there is no group, others NULL.
    """
    if aggregate.function not in COUNTS:
        return aggregate.output
    return call("coalesce", aggregate.output, Literal(0, BIGINT))


def selects(plan: Values) -> tuple[Operator, ...]:
    """Return every row as a SELECT without FROM, all with the same columns."""
    rows = (tuple(zip(plan.fields, row, strict=True)) for row in plan.rows)
    return tuple(Project(Values((), ((),)), outputs) for outputs in rows)


Fresh = Callable[[str, Type], Column]
"""Gives a column that the plan does not have yet, from a name for people and its type."""


def conjunction(terms: Iterable[Scalar]) -> Scalar | None:
    """Return all of the terms, or None for no condition at all."""
    conditions = tuple(terms)
    return chain("and", conditions) if conditions else None


def same(left: Iterable[Scalar], right: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """Return pairwise equality in which NULLs are equal, as identity needs it."""
    return tuple(call("is not distinct from", a, b) for a, b in zip(left, right, strict=True))


def keep(plan: Operator, columns: Iterable[Column]) -> Operator:
    """Return the plan with exactly these of its columns."""
    requested_columns = tuple(columns)
    if plan.columns == requested_columns:
        return plan
    return Project(plan, tuple((column, column) for column in requested_columns))


def distinct(plan: Operator) -> Operator:
    return Aggregate(plan, plan.columns, ())
