"""An aggregate call as Spark SQL over all rows of its group, each once."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headrace.algebra.scalar import Column
from headrace.functions import AGGREGATE_BY_NAME, GroupRows
from headrace.functions.function import spark_cast, spark_function
from headrace.plan.operators import AggregateCall
from headrace.render.pieces import WEIGHT, bigint, columns_named, weighted
from headrace.render.scalars import column, identifier


def rendered_call(call: AggregateCall) -> exp.Expression:
    """The call over columns named by their ids, in its own type."""
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
    """Weighted rows that are there, each as often as its weight says, with weight 1."""
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
