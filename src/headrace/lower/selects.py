"""selects: VALUES (a), (b) as SELECT a UNION ALL SELECT b."""

from __future__ import annotations

from headrace.plan.operators import Operator, Project, Values


def selects(plan: Values) -> tuple[Operator, ...]:
    """Every row as a SELECT without FROM, all with the same columns."""
    rows = (tuple(zip(plan.fields, row, strict=True)) for row in plan.rows)
    return tuple(Project(Values((), ((),)), outputs) for outputs in rows)
