"""correlate and inline: an inner query beside the enclosing rows, or computed on them.

correlate has three forms, and takes the first that fits:

| the inner query | joined with |
|---|---|
| reads no column of the enclosing row | itself |
| reads them in conditions at its top only | itself, on these conditions |
| reads them anywhere | itself for every distinct value read (`depend`), on equal values |

The second form computes rows that no enclosing row needs. A query whose expressions can raise must
not take it: PostgreSQL never evaluates them on those rows.

inline computes an inner query without tables of its own on the enclosing row itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.algebra.scalar import (
    Outer,
    Scalar,
    columns_of,
    map_outers,
    map_outers_of_plan,
    outer_reads,
)
from headrace.functions import can_raise
from headrace.lower.build import Fresh, distinct, same
from headrace.lower.depend import Depend, pull
from headrace.plan.operators import Filter, Operator, Project, Unnest, Values


@dataclass(frozen=True)
class Correlated:
    """An inner query as part of the enclosing one: `conditions` say which rows are for a row."""

    plan: Operator
    conditions: tuple[Scalar, ...] = ()


def correlate(inner: Operator, enclosing: Operator, fresh: Fresh) -> Correlated:
    """Return the inner query's rows for all rows of `enclosing`, its own columns among theirs."""
    if not reads_of(inner):
        return Correlated(map_outers_of_plan(inner, _inward))
    pulled = None if raises(inner) else pull(inner)
    if pulled is not None:
        plan, conditions = pulled
        return Correlated(plan, tuple(map(inward, conditions)))
    return depending(inner, enclosing, fresh)


def depending(inner: Operator, enclosing: Operator, fresh: Fresh) -> Correlated:
    """Return the general form: the inner query for every distinct value that it reads."""
    reads = reads_of(inner)
    columns = tuple(fresh("read", read.type) for read in reads)
    values = distinct(Project(enclosing, tuple(zip(columns, reads, strict=True))))
    plan, keys = Depend(fresh, values, reads).plan(inner)
    return Correlated(plan, same(reads, keys))


def raises(inner: Operator) -> bool:
    """Return whether evaluating some row of the inner query can fail."""
    return any(map(can_raise, inner.scalars)) or any(map(raises, inner.children))


def reads_of(inner: Operator) -> tuple[Scalar, ...]:
    """Return the expressions of the enclosing row that the inner query reads, each once.

    What the inner query reads further out, through no column of that row, is a constant here.
    """
    return tuple(dict.fromkeys(read for read in outer_reads(inner) if columns_of(read)))


def inward(scalar: Scalar) -> Scalar:
    """Return an inner query's expression where the enclosing row stands beside its own."""
    return map_outers(scalar, _inward)


def _inward(outer: Outer) -> Scalar:
    return outer.scalar


def inline(inner: Operator, enclosing: Operator) -> Operator | None:
    """Return every enclosing row beside the inner query's rows for it; None if it has tables."""
    match inner:
        case Values(fields=(), rows=((),)):
            return enclosing
        case Values(fields=fields, rows=(row,)):
            computed = zip(fields, map(inward, row), strict=True)
            return Project(enclosing, (*((c, c) for c in enclosing.columns), *computed))
        case Values(fields=fields, rows=rows):
            cells = tuple(inward(cell) for row in rows for cell in row)
            return Unnest(enclosing, "rows", cells, fields)
        case Filter(child=child) | Unnest(child=child):
            below = inline(child, enclosing)
            if below is None:
                return None
            scalars = tuple(map(inward, inner.scalars))
            return inner.with_children(below).with_scalars(scalars)
        case Project(child=child, outputs=outputs):
            below = inline(child, enclosing)
            if below is None:
                return None
            inner_outputs = ((column, inward(scalar)) for column, scalar in outputs)
            return Project(below, (*((c, c) for c in enclosing.columns), *inner_outputs))
        case _:
            return None


def inline_kept(inner: Operator, enclosing: Operator) -> Operator | None:
    """Return `inline` with rows without inner rows kept, padded with NULLs; None if impossible."""
    if _has_rows(inner):
        return inline(inner, enclosing)
    if isinstance(inner, Unnest) and _has_rows(inner.child):
        return inline(replace(inner, keep=True), enclosing)
    return None


def _has_rows(inner: Operator) -> bool:
    """Return whether the inner query has a row for every enclosing one."""
    match inner:
        case Values():
            return True
        case Project(child=child):
            return _has_rows(child)
        case _:
            return False
