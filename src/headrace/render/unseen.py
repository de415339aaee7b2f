"""Part and Unseen as Spark SQL.

Unseen evaluates what was found once, and keeps it small: what is known is a log, which may be large
and hold a row with weights of both signs, and only streams past.

    once(found)  left join  known      on all columns, NULLs equal
    grouped by all columns, of which known's weights sum up to 0 or less
"""

from __future__ import annotations

from sqlglot import exp

from headrace.functions.function import spark_function
from headrace.plan.operators import Part, Unseen
from headrace.render.pieces import (
    WEIGHT,
    aliased,
    bigint,
    columns_named,
    joined,
    of_table,
    select_weighted,
    weighted,
)
from headrace.render.scalars import column

Side = tuple[str, exp.Expression]
KNOWN = "_known"


def part(plan: Part, child: exp.Expression) -> exp.Select:
    """Rows of one sign, their weights positive."""
    is_added = plan.sign == "added"
    weight = column(WEIGHT) if is_added else exp.Neg(this=column(WEIGHT))
    compare = exp.GT if is_added else exp.LT
    shown = weighted(weight, *columns_named(plan.columns)).from_(child, copy=False)
    return shown.where(compare(this=column(WEIGHT), expression=bigint(0)), copy=False)


def once(plan: Unseen, found: exp.Expression) -> exp.Select:
    """Every row found, one time. Keys come out as Spark groups them: -0.0 as 0.0, one NaN."""
    query = weighted(bigint(1), *columns_named(plan.columns)).from_(found, copy=False)
    if plan.columns:
        query = query.group_by(*columns_named(plan.columns), copy=False)
    total = spark_function("sum", column(WEIGHT))
    return query.having(exp.GT(this=total, expression=bigint(0)), copy=False)


def beside_known(plan: Unseen, found: Side, known: Side) -> exp.Select:
    """Rows found once, each beside the weights that it has in what is known."""
    same = [
        exp.NullSafeEQ(this=of_table(found[0], a.id), expression=of_table(known[0], b.id))
        for a, b in zip(plan.found.columns, plan.known.columns, strict=True)
    ]
    shown = [of_table(found[0], name) for name in (WEIGHT, *(c.id for c in plan.columns))]
    weight = aliased(of_table(known[0], WEIGHT), KNOWN)
    select = exp.Select(expressions=[*shown, weight]).from_(found[1], copy=False)
    return joined(select, "left", known[1], exp.and_(*same) if same else exp.true())


def unseen(plan: Unseen, rows: exp.Expression) -> exp.Select:
    """Of rows beside known weights those that are not known."""
    total = spark_function("coalesce", spark_function("sum", column(KNOWN)), bigint(0))
    groups = [column(WEIGHT), *columns_named(plan.columns)]
    query = select_weighted(plan.columns).from_(rows, copy=False).group_by(*groups, copy=False)
    return query.having(exp.LTE(this=total, expression=bigint(0)), copy=False)
