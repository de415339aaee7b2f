"""Groups and aggregate calls as Spark SQL: state accumulated from rows, or merged with a change."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headrace.algebra.scalar import Column
from headrace.functions import AGGREGATE_BY_NAME, GroupRows
from headrace.functions.function import spark_binary, spark_cast, spark_function
from headrace.plan.operators import STALE, AggregateCall, GroupState, Merge
from headrace.render.extrema import (
    any_stale,
    changed_values,
    extremum,
    gathered,
    grown,
    merged,
    moved,
    stored_values,
)
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


def rendered_call(call: AggregateCall) -> exp.Expression:
    """Return the call over columns named by their ids, in its own type."""
    function = AGGREGATE_BY_NAME[call.function]
    rows = GroupRows(
        tuple(column(argument.id) for argument in call.arguments),
        tuple(argument.type for argument in call.arguments),
        function.needed,
        call.distinct,
        tuple((column(key.column.id), key.descending, key.nulls_first) for key in call.order),
        None if call.only is None else column(call.only.id),
    )
    return spark_cast(function.spark(rows, call.output.type), call.output.type)


def expanded(
    columns: tuple[Column, ...], rows: exp.Expression, alias: Callable[[], str]
) -> exp.Select:
    """Return weighted rows, none negative, each as often as its weight says, with weight 1."""
    copies = exp.Lateral(
        this=spark_function("explode", spark_function("sequence", bigint(1), column(WEIGHT))),
        view=True,
        alias=exp.TableAlias(this=identifier(alias()), columns=[identifier("copy")]),
    )
    return (
        weighted(bigint(1), *columns_named(columns))
        .from_(rows, copy=False)
        .lateral(copies, copy=False)
    )


def accumulate(
    state: GroupState, rows: exp.Expression, columns: tuple[Column, ...], alias: Callable[[], str]
) -> exp.Select:
    """Return the state of every group of `rows`, each with weight 1.

    `columns` are those of the rows.
    """
    if state.calls:
        rows = as_table(expanded(columns, rows, alias), alias())
    count = spark_function("coalesce", spark_function("sum", column(WEIGHT)), bigint(0))
    sums = [named(_sum(c, _weighted_term(c, render_scalar(term))), c) for c, term in state.sums]
    bests = [named(extremum(e, render_scalar(e.term)), e.column) for e in state.extrema]
    calls = [named(rendered_call(call), call.output) for call in state.calls]
    select_list = (*_keys(state), named(count, state.rows), *sums, *bests, *calls)
    query = weighted(bigint(1), *select_list).from_(rows, copy=False)
    if not state.keys:
        return query
    occupied = exp.NEQ(this=spark_function("sum", column(WEIGHT)), expression=bigint(0))
    return query.group_by(*(column(key.id) for _, key in state.keys), copy=False).having(
        occupied, copy=False
    )


def _sum(c: Column, term: exp.Expression) -> exp.Expression:
    """Return a sum that is 0 of no rows."""
    zero = spark_cast(exp.Literal.number(0), c.type)
    return spark_cast(spark_function("coalesce", spark_function("sum", term), zero), c.type)


def merge(
    plan: Merge, stored: exp.Expression, change: exp.Expression, alias: Callable[[], str]
) -> exp.Select:
    """Return −old and +new rows of groups that differ, from stored groups and changes summed once.

    Stored groups and changes are united: each side has NULL in the other's columns, which costs a
    sum nothing.
    """
    state = plan.state
    union = exp.Union(
        this=_stored_side(plan, stored),
        expression=_change_side(plan, change),
        distinct=False,
    )
    totals: list[exp.Expression] = []
    differs: list[exp.Expression] = []
    for c in state.totals:
        for side in ("old", "added"):
            totals.append(aliased(_sum(c, column(f"{side}_{c.id}")), f"{side}_{c.id}"))
        added = spark_function("sum", column(f"added_{c.id}"))
        differs.append(exp.NEQ(this=added, expression=spark_cast(exp.Literal.number(0), c.type)))
    for each in state.extrema:
        totals.extend(gathered(each, plan.grows))
        differs.append(moved(each, plan.grows))
    keys = columns_named(state.key_columns)
    summed = exp.Select(expressions=[*keys, *totals]).from_(as_table(union, alias()), copy=False)
    if state.keys:
        summed = summed.group_by(*columns_named(state.key_columns), copy=False)
    return _two_rows(plan, summed.having(exp.or_(*differs), copy=False), alias)


def _two_rows(plan: Merge, summed: exp.Select, alias: Callable[[], str]) -> exp.Select:
    """Return each summed group as its old row (weight −1) and its new row (1), if it has them."""
    state = plan.state
    signs = exp.Lateral(
        this=spark_function("explode", spark_function("array", bigint(-1), bigint(1))),
        view=True,
        alias=exp.TableAlias(this=identifier(alias()), columns=[identifier(WEIGHT)]),
    )
    totals = {c.id: _new_total(c) for c in state.totals}
    new = [(c, totals[c.id]) for c in state.totals]
    for each in state.extrema:
        present = totals[each.present.id].copy()
        new.append((each.column, grown(each) if plan.grows else merged(each, present)))
    select_list = []
    for c, value in new:
        is_new = exp.EQ(this=column(WEIGHT), expression=bigint(1))
        old = column(f"old_{c.id}")
        select_list.append(named(exp.Case(ifs=[exp.If(this=is_new, true=value)], default=old), c))
    if STALE in plan.columns:
        select_list.append(named(any_stale(state, totals), STALE))
    keys = columns_named(state.key_columns)
    both = (
        weighted(column(WEIGHT), *keys, *select_list)
        .from_(as_table(summed, alias()), copy=False)
        .lateral(signs, copy=False)
    )
    if not state.keys:
        return both
    occupied = exp.NEQ(this=column(state.rows.id), expression=bigint(0))
    return (
        select_weighted(plan.columns)
        .from_(as_table(both, alias()), copy=False)
        .where(occupied, copy=False)
    )


def _new_total(c: Column) -> exp.Expression:
    old, added = column(f"old_{c.id}"), column(f"added_{c.id}")
    return spark_cast(spark_binary(exp.Add, old, added), c.type)


def _stored_side(plan: Merge, stored: exp.Expression) -> exp.Select:
    state = plan.state
    select_list = columns_named(state.key_columns)
    for c in state.totals:
        select_list.append(aliased(_weighted_term(c, column(c.id)), f"old_{c.id}"))
        select_list.append(aliased(spark_cast(exp.null(), c.type), f"added_{c.id}"))
    for each in state.extrema:
        select_list.extend(stored_values(each, plan.grows))
    return exp.Select(expressions=select_list).from_(stored, copy=False)


def _change_side(plan: Merge, change: exp.Expression) -> exp.Select:
    state = plan.state
    terms: list[tuple[Column, exp.Expression]] = [(state.rows, column(WEIGHT))]
    terms += [(c, _weighted_term(c, render_scalar(term))) for c, term in state.sums]
    select_list = _keys(state)
    for c, term in terms:
        select_list.append(aliased(spark_cast(exp.null(), c.type), f"old_{c.id}"))
        select_list.append(aliased(spark_cast(term, c.type), f"added_{c.id}"))
    for each in state.extrema:
        select_list.extend(changed_values(each, plan.grows))
    return exp.Select(expressions=select_list).from_(change, copy=False)


def _keys(state: GroupState) -> list[exp.Expression]:
    """Return the state's keys computed from the columns of the rows that are grouped."""
    return [named(column(key.id), c) for c, key in state.keys]


def _weighted_term(c: Column, term: exp.Expression) -> exp.Expression:
    """Return weight · term in the type that its sum is kept in."""
    if c.type == BIGINT:
        return spark_binary(exp.Mul, column(WEIGHT), term)
    if c.type.is_float:
        return spark_binary(exp.Mul, spark_cast(column(WEIGHT), c.type), term)
    weight = exp.Cast(this=column(WEIGHT), to=exp.DataType.build("DECIMAL(19,0)", dialect="spark"))
    return spark_cast(spark_binary(exp.Mul, weight, term), c.type)
