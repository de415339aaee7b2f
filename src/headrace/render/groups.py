"""Groups as Spark SQL: their state accumulated from rows, or merged with a change."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headrace.functions.function import spark_binary, spark_cast, spark_function
from headrace.plan.operators import GroupState
from headrace.plan.scalar import Column
from headrace.render.pieces import (
    WEIGHT,
    aliased,
    as_table,
    bigint,
    columns_named,
    named,
    select_weighted,
    weighted,
)
from headrace.render.scalars import column, identifier, render_scalar
from headrace.types import BIGINT


def accumulate(state: GroupState, rows: exp.Subquery) -> exp.Select:
    """The state of every group of `rows`, each with weight 1."""
    count = spark_function("coalesce", spark_function("sum", column(WEIGHT)), bigint(0))
    sums = [named(_sum(c, _weighted_term(c, render_scalar(term))), c) for c, term in state.sums]
    query = weighted(bigint(1), *_keys(state), named(count, state.rows), *sums).from_(rows)
    if not state.keys:
        return query
    occupied = exp.NEQ(this=spark_function("sum", column(WEIGHT)), expression=bigint(0))
    return query.group_by(*(column(key.id) for _, key in state.keys)).having(occupied)


def _sum(c: Column, term: exp.Expression) -> exp.Expression:
    """A sum that is 0 of no rows."""
    zero = spark_cast(exp.Literal.number(0), c.type)
    return spark_cast(spark_function("coalesce", spark_function("sum", term), zero), c.type)


def merge(
    state: GroupState, stored: exp.Subquery, change: exp.Subquery, alias: Callable[[], str]
) -> exp.Select:
    """Stored sums and changes side by side, summed once; then −old and +new of what differs."""
    values = (state.rows, *(c for c, _ in state.sums))
    union = exp.Union(
        this=_stored_side(state, values, stored),
        expression=_change_side(state, change),
        distinct=False,
    )
    totals: list[exp.Expression] = []
    moved: list[exp.Expression] = []
    for c in values:
        for side in ("old", "added"):
            total = spark_function("sum", column(f"{side}_{c.id}"))
            totals.append(aliased(spark_cast(total, c.type), f"{side}_{c.id}"))
        added = spark_function("sum", column(f"added_{c.id}"))
        moved.append(exp.NEQ(this=added, expression=spark_cast(exp.Literal.number(0), c.type)))
    keys = columns_named(state.key_columns)
    summed = exp.Select(expressions=[*keys, *totals]).from_(as_table(union, alias()))
    if state.keys:
        summed = summed.group_by(*columns_named(state.key_columns))
    return _two_rows(state, values, summed.having(exp.or_(*moved)), alias)


def _two_rows(
    state: GroupState, values: tuple[Column, ...], summed: exp.Select, alias: Callable[[], str]
) -> exp.Select:
    """Each summed group as its old row (weight −1) and its new row (1), if it has them."""
    signs = exp.Lateral(
        this=spark_function("explode", spark_function("array", bigint(-1), bigint(1))),
        view=True,
        alias=exp.TableAlias(this=identifier(alias()), columns=[identifier(WEIGHT)]),
    )
    shown = []
    for c in values:
        old, added = column(f"old_{c.id}"), column(f"added_{c.id}")
        new = spark_cast(spark_binary(exp.Add, old.copy(), added), c.type)
        is_new = exp.EQ(this=column(WEIGHT), expression=bigint(1))
        shown.append(named(exp.Case(ifs=[exp.If(this=is_new, true=new)], default=old), c))
    keys = columns_named(state.key_columns)
    both = weighted(column(WEIGHT), *keys, *shown).from_(as_table(summed, alias())).lateral(signs)
    if not state.keys:
        return both
    occupied = exp.NEQ(this=column(state.rows.id), expression=bigint(0))
    rows = select_weighted((*state.key_columns, *values)).from_(as_table(both, alias()))
    return rows.where(occupied)


def _stored_side(state: GroupState, values: tuple[Column, ...], stored: exp.Subquery) -> exp.Select:
    shown = columns_named(state.key_columns)
    for c in values:
        shown.append(aliased(_weighted_term(c, column(c.id)), f"old_{c.id}"))
        shown.append(aliased(spark_cast(exp.Literal.number(0), c.type), f"added_{c.id}"))
    return exp.Select(expressions=shown).from_(stored)


def _change_side(state: GroupState, change: exp.Subquery) -> exp.Select:
    terms: list[tuple[Column, exp.Expression]] = [(state.rows, column(WEIGHT))]
    terms += [(c, _weighted_term(c, render_scalar(term))) for c, term in state.sums]
    shown = _keys(state)
    for c, term in terms:
        shown.append(aliased(spark_cast(exp.Literal.number(0), c.type), f"old_{c.id}"))
        shown.append(aliased(spark_cast(term, c.type), f"added_{c.id}"))
    return exp.Select(expressions=shown).from_(change)


def _keys(state: GroupState) -> list[exp.Expression]:
    """The state's keys computed from the columns of the rows that are grouped."""
    return [named(column(key.id), c) for c, key in state.keys]


def _weighted_term(c: Column, term: exp.Expression) -> exp.Expression:
    """weight · term in the type that its sum is kept in."""
    if c.type == BIGINT:
        return spark_binary(exp.Mul, column(WEIGHT), term)
    if c.type.is_float:
        return spark_binary(exp.Mul, spark_cast(column(WEIGHT), c.type), term)
    weight = exp.Cast(this=column(WEIGHT), to=exp.DataType.build("DECIMAL(19,0)", dialect="spark"))
    return spark_cast(spark_binary(exp.Mul, weight, term), c.type)
