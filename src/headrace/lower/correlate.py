"""correlate: rows of an inner query beside the enclosing rows that they are for.

Three ways, the first that fits:

| the inner query | joined with |
|---|---|
| reads no column of the enclosing row | itself |
| reads them in conditions at its top only | itself, on these conditions |
| reads them anywhere | itself for every distinct value read (`depend`), on equal values |

The second computes rows that no enclosing row asks for. One whose expressions can raise must not:
PostgreSQL never sees those rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.algebra.scalar import (
    Outer,
    Scalar,
    columns_of,
    map_outers,
    map_outers_of_plan,
    outer_reads,
)
from headrace.functions import can_raise
from headrace.lower.depend import Depend
from headrace.lower.fresh import Fresh, distinct, same
from headrace.lower.pull import pull
from headrace.plan.operators import Operator, Project


@dataclass(frozen=True)
class Correlated:
    """An inner query as part of the enclosing one: `conditions` say which rows are for a row."""

    plan: Operator
    conditions: tuple[Scalar, ...] = ()


def correlate(inner: Operator, enclosing: Operator, fresh: Fresh) -> Correlated:
    """The inner query's rows for all rows of `enclosing`, its own columns among theirs."""
    if not reads_of(inner):
        return Correlated(map_outers_of_plan(inner, _inward))
    pulled = None if raises(inner) else pull(inner)
    if pulled is not None:
        plan, conditions = pulled
        return Correlated(plan, tuple(map(inward, conditions)))
    return depending(inner, enclosing, fresh)


def depending(inner: Operator, enclosing: Operator, fresh: Fresh) -> Correlated:
    """The general way: the inner query for every distinct value that it reads."""
    reads = reads_of(inner)
    columns = tuple(fresh("read", read.type) for read in reads)
    values = distinct(Project(enclosing, tuple(zip(columns, reads, strict=True))))
    plan, keys = Depend(fresh, values, reads).plan(inner)
    return Correlated(plan, same(reads, keys))


def raises(inner: Operator) -> bool:
    """Whether evaluating some row of the inner query can fail."""
    return any(map(can_raise, inner.scalars)) or any(map(raises, inner.children))


def reads_of(inner: Operator) -> tuple[Scalar, ...]:
    """What the inner query reads of the enclosing row, each expression once.

    What it reads further out, through no column of that row, is a constant here.
    """
    return tuple(dict.fromkeys(read for read in outer_reads(inner) if columns_of(read)))


def inward(scalar: Scalar) -> Scalar:
    """An inner query's expression where the enclosing row stands beside its own."""
    return map_outers(scalar, _inward)


def _inward(outer: Outer) -> Scalar:
    return outer.scalar
