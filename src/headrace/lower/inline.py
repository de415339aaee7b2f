"""inline: an inner query without tables of its own is computed on the enclosing row itself."""

from __future__ import annotations

from dataclasses import replace

from headrace.lower.correlate import inward
from headrace.plan.operators import Filter, Operator, Project, Unnest, Values


def inline(inner: Operator, enclosing: Operator) -> Operator | None:
    """Every enclosing row beside the inner query's rows for it; None if it has tables."""
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
            shown = ((column, inward(scalar)) for column, scalar in outputs)
            return Project(below, (*((c, c) for c in enclosing.columns), *shown))
        case _:
            return None


def inline_kept(inner: Operator, enclosing: Operator) -> Operator | None:
    """The same where a row without inner rows is kept, padded with NULLs."""
    if _has_rows(inner):
        return inline(inner, enclosing)
    if isinstance(inner, Unnest) and _has_rows(inner.child):
        return inline(replace(inner, keep=True), enclosing)
    return None


def _has_rows(inner: Operator) -> bool:
    """Whether the inner query has a row for every enclosing one."""
    match inner:
        case Values():
            return True
        case Project(child=child):
            return _has_rows(child)
        case _:
            return False
