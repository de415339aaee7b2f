"""The change of stored first rows as Spark SQL.

Stored rows and changes stand side by side, equal ones as one: `_old` copies are stored, `_new` ones
would be. What lies behind the last stored row of a group that is full is left out; of the rest the
first are counted as `top` does. The table of cases is in `plan/operators/top.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headrace.functions.function import spark_binary, spark_function
from headrace.plan.operators import STALE, TopMerge
from headrace.render.frames import Spec, over, some_order, sorted_by
from headrace.render.pieces import (
    WEIGHT,
    aliased,
    as_table,
    bigint,
    columns_named,
    grouped_rows,
    named,
    select_weighted,
    weighted,
)
from headrace.render.scalars import column

_OLD, _NEW, _HELD, _PLACE, _LAST, _LEFT, _END, _BEFORE = (
    "_old", "_new", "_held", "_place", "_last", "_left", "_end", "_before",
)  # fmt: skip
_UP_TO_ROW: Spec = ("ROWS", ("UNBOUNDED", "PRECEDING"), ("CURRENT ROW", None))
_UP_TO_PEERS: Spec = ("RANGE", ("UNBOUNDED", "PRECEDING"), ("CURRENT ROW", None))
_PEERS: Spec = ("RANGE", ("CURRENT ROW", None), ("CURRENT ROW", None))


def top_merge(
    plan: TopMerge, stored: exp.Expression, change: exp.Expression, alias: Callable[[], str]
) -> exp.Select:
    """Return old rows with negative, new rows with positive weights, and which groups are stale."""
    stored_columns = columns_named(plan.stored.columns)
    sides = exp.Union(
        this=_side(plan, column(WEIGHT)).from_(stored, copy=False),
        expression=_side(plan, bigint(0)).from_(change, copy=False),
        distinct=False,
    )
    groups, select_list = grouped_rows(plan.stored.columns)
    sums = [aliased(spark_function("sum", column(name)), name) for name in (_OLD, _NEW)]
    rows = exp.Select(expressions=[*select_list, *sums]).from_(as_table(sides, alias()), copy=False)
    rows = rows.group_by(*groups, copy=False)
    placed = exp.Select(
        expressions=[*stored_columns, *_counts(), *_places(plan)],
    ).from_(as_table(rows, alias()), copy=False)
    last = over(spark_function("max", _if(_positive(_OLD), column(_PLACE))), plan.keys)
    bounded = exp.Select(
        expressions=[
            *stored_columns,
            *_counts(),
            column(_HELD),
            column(_PLACE),
            aliased(last, _LAST),
        ]
    ).from_(as_table(placed, alias()), copy=False)
    inside = exp.or_(
        exp.LT(this=column(_HELD), expression=bigint(plan.limit)),
        exp.LTE(this=column(_PLACE), expression=column(_LAST)),
    )
    remaining_rows = (
        exp.Select(expressions=[exp.Star()])
        .from_(as_table(bounded, alias()), copy=False)
        .where(inside, copy=False)
    )
    counted = exp.Select(
        expressions=[*stored_columns, *_counts(), column(_HELD), *_sums(plan)],
    ).from_(as_table(remaining_rows, alias()), copy=False)
    moved: exp.Expression = exp.Paren(this=exp.Sub(this=_taken(plan), expression=column(_OLD)))
    marks = []
    if not plan.grows:
        moved = _if(_is_stale(plan), exp.Neg(this=column(_OLD)), moved)
        marks = [named(_is_stale(plan), STALE)]
    result = weighted(moved, *stored_columns, *marks).from_(as_table(counted, alias()), copy=False)
    some = exp.NEQ(this=column(WEIGHT), expression=bigint(0))
    return (
        select_weighted(plan.columns)
        .from_(as_table(result, alias()), copy=False)
        .where(some, copy=False)
    )


def _side(plan: TopMerge, old: exp.Expression) -> exp.Select:
    stored_columns = columns_named(plan.stored.columns)
    return exp.Select(
        expressions=[*stored_columns, aliased(old, _OLD), aliased(column(WEIGHT), _NEW)]
    )


def _counts() -> list[exp.Expression]:
    return [column(_OLD), column(_NEW)]


def _places(plan: TopMerge) -> list[exp.Expression]:
    """Return the number of stored rows of the group, and the place of each row."""
    stored_count = over(spark_function("sum", column(_OLD)), plan.keys)
    if plan.with_ties:
        place = over(spark_function("rank"), plan.keys, _order(plan, peers=True))
    else:
        place = over(spark_function("row_number"), plan.keys, _order(plan))
    return [aliased(stored_count, _HELD), aliased(place, _PLACE)]


def _order(plan: TopMerge, *, peers: bool = False) -> exp.Order:
    return some_order(sorted_by(plan.order if peers else (*plan.order, *plan.ties)))


def _sums(plan: TopMerge) -> list[exp.Expression]:
    """Return the numbers of rows left of the group, up to each row, and before its peers.

    The number of rows left identifies stale groups only.
    """
    total = spark_function("sum", column(_NEW))
    sums = [aliased(over(total.copy(), plan.keys, _order(plan), _UP_TO_ROW), _END)]
    if not plan.grows:
        sums.insert(0, aliased(over(total, plan.keys), _LEFT))
    if plan.with_ties:
        peers = _order(plan, peers=True)
        up_to = over(total.copy(), plan.keys, peers, _UP_TO_PEERS)
        own = over(total.copy(), plan.keys, peers.copy(), _PEERS)
        sums.append(aliased(spark_binary(exp.Sub, up_to, own), _BEFORE))
    return sums


def _taken(plan: TopMerge) -> exp.Expression:
    """Return the number of copies of the row among the first rows."""
    limit = bigint(plan.limit)
    if plan.with_ties:
        among = exp.LT(this=column(_BEFORE), expression=limit)
        return _if(among, column(_NEW), bigint(0))
    before = spark_binary(exp.Sub, column(_END), column(_NEW))
    until = spark_function("least", column(_END), limit)
    return spark_function("greatest", spark_binary(exp.Sub, until, before), bigint(0))


def _is_stale(plan: TopMerge) -> exp.Expression:
    """Return whether the group was full, and too few are left."""
    limit = bigint(plan.limit)
    full = exp.GTE(this=column(_HELD), expression=limit)
    short = exp.LT(this=column(_LEFT), expression=limit.copy())
    return exp.Paren(this=exp.and_(full, short))


def _positive(name: str) -> exp.Expression:
    return exp.GT(this=column(name), expression=bigint(0))


def _if(
    test: exp.Expression, true: exp.Expression, false: exp.Expression | None = None
) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=test, true=true)], default=false)
