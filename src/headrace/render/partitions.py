"""Windows and tops as Spark SQL, over rows that are there.

A window's rows are expanded by their weights first; a top counts weights up instead. Both leave
undecided only rows that are equal, and copies of one row are numbered where two orders must agree
on which is which.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headrace.functions.function import spark_binary, spark_function
from headrace.functions.windows import has_places
from headrace.plan.operators import Top, Window
from headrace.render.frames import over, some_order, sorted_by
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
from headrace.render.scalars import column, identifier
from headrace.render.window_calls import COPY, positions, rendered_call

_END, _BEFORE, _PLACE = "_end", "_before", "_place"


def window(plan: Window, rows: exp.Expression, alias: Callable[[], str]) -> exp.Select:
    """Return the window over weighted rows: each copy by itself, with weight 1."""
    copies = exp.Lateral(
        this=spark_function("explode", spark_function("sequence", bigint(1), column(WEIGHT))),
        view=True,
        alias=exp.TableAlias(this=identifier(alias()), columns=[identifier(COPY)]),
    )
    select_list = [*columns_named(plan.child.columns), column(COPY)]
    expanded = (
        exp.Select(expressions=select_list).from_(rows, copy=False).lateral(copies, copy=False)
    )
    return weighted(bigint(1), *_results(plan)).from_(_placed(plan, expanded, alias), copy=False)


def native_window(plan: Window, rows: exp.Expression, alias: Callable[[], str]) -> exp.Select:
    """Return the window over an ordinary bag."""
    select_list = columns_named(plan.child.columns)
    if _needs_copies(plan):
        number = over(spark_function("row_number"), plan.child.columns, sorted_by((), bigint(1)))
        select_list.append(aliased(number, COPY))
    else:
        select_list.append(aliased(bigint(1), COPY))
    numbered = exp.Select(expressions=select_list).from_(rows, copy=False)
    return exp.Select(expressions=_results(plan)).from_(_placed(plan, numbered, alias), copy=False)


def _needs_copies(plan: Window) -> bool:
    """Return whether the copies of a row have places in several orders."""
    orders = {(call.order, call.ties) for call in plan.calls if has_places(call)}
    return len(orders) > 1


def _placed(plan: Window, rows: exp.Select, alias: Callable[[], str]) -> exp.Subquery:
    """Return the rows with the places that some calls are computed from."""
    table = as_table(rows, alias())
    places = [
        each for number, call in enumerate(plan.calls) for each in positions(plan, call, number)
    ]
    if not places:
        return table
    row_columns = [*columns_named(plan.child.columns), column(COPY)]
    return as_table(
        exp.Select(expressions=[*row_columns, *places]).from_(table, copy=False), alias()
    )


def _results(plan: Window) -> list[exp.Expression]:
    calls = [named(rendered_call(plan, call), call.output) for call in plan.calls]
    return [*columns_named(plan.child.columns), *calls]


def top(plan: Top, rows: exp.Expression, alias: Callable[[], str]) -> exp.Select:
    """Return each row with as many of its copies as are taken.

    `_end` is the place of the last one.
    """
    counted = over(
        spark_function("sum", column(WEIGHT)),
        plan.keys,
        sorted_by((*plan.order, *plan.ties)),
        ("ROWS", ("UNBOUNDED", "PRECEDING"), ("CURRENT ROW", None)),
    )
    places = [aliased(counted, _END)]
    if plan.with_ties:
        places.append(aliased(_before_peers(plan), _BEFORE))
    select_list = [column(WEIGHT), *columns_named(plan.columns), *places]
    placed = as_table(exp.Select(expressions=select_list).from_(rows, copy=False), alias())
    first = spark_binary(exp.Sub, column(_END), column(WEIGHT))
    start = spark_function("greatest", first, bigint(plan.offset))
    end: exp.Expression = column(_END)
    if plan.limit is not None and not plan.with_ties:
        end = spark_function("least", end, bigint(plan.offset + plan.limit))
    taken = weighted(spark_binary(exp.Sub, end, start), *columns_named(plan.columns)).from_(
        placed, copy=False
    )
    if plan.with_ties and plan.limit is not None:
        last = bigint(plan.offset + plan.limit)
        taken = taken.where(exp.LT(this=column(_BEFORE), expression=last), copy=False)
    some = exp.GT(this=column(WEIGHT), expression=bigint(0))
    return (
        select_weighted(plan.columns)
        .from_(as_table(taken, alias()), copy=False)
        .where(some, copy=False)
    )


def _before_peers(plan: Top) -> exp.Expression:
    """Return the number of rows before the first of a row's peers."""
    total = spark_function("sum", column(WEIGHT))
    order = sorted_by(plan.order)
    up_to = ("RANGE", ("UNBOUNDED", "PRECEDING"), ("CURRENT ROW", None))
    peers = ("RANGE", ("CURRENT ROW", None), ("CURRENT ROW", None))
    return spark_binary(
        exp.Sub,
        over(total, plan.keys, order, up_to),
        over(total.copy(), plan.keys, order.copy(), peers),
    )


def native_top(plan: Top, rows: exp.Expression, alias: Callable[[], str]) -> exp.Select:
    """Return the rows of an ordinary bag by their numbers."""
    order = some_order(sorted_by((*plan.order, *plan.ties)))
    number = over(spark_function("row_number"), plan.keys, order)
    places = [aliased(number, _PLACE)]
    if plan.with_ties:
        rank = over(spark_function("rank"), plan.keys, some_order(sorted_by(plan.order)))
        places.append(aliased(rank, _BEFORE))
    placed = exp.Select(expressions=[*columns_named(plan.columns), *places]).from_(rows, copy=False)
    taken = exp.Select(expressions=columns_named(plan.columns)).from_(
        as_table(placed, alias()), copy=False
    )
    taken = taken.where(exp.GT(this=column(_PLACE), expression=bigint(plan.offset)), copy=False)
    if plan.limit is None:
        return taken
    counted = column(_BEFORE if plan.with_ties else _PLACE)
    return taken.where(
        exp.LTE(this=counted, expression=bigint(plan.offset + plan.limit)), copy=False
    )
