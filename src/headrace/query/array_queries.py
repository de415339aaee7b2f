"""Arrays of a query's rows, and percentiles for an array of fractions, as expressions of others.

ARRAY(SELECT x FROM … ORDER BY y)
    coalesce((SELECT array_agg(v ORDER BY o1) FROM (SELECT x, y FROM …) AS q (v, o1)), '{}')
percentile_cont(ARRAY[a, b]) WITHIN GROUP (ORDER BY x)
    CASE WHEN count(x) > 0 THEN ARRAY[percentile_cont(a) …, percentile_cont(b) …] END
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.query.identifiers import name_of
from headrace.query.inner import unwrapped
from headrace.query.output_names import output_name

_TABLE, _VALUE = "gathered", "value"


def gathered(node: exp.Anonymous) -> exp.Expr:
    """The expression that `ARRAY(SELECT …)` stands for."""
    query = unwrapped(node.expressions[0]).copy()
    order, read = _order(query)
    names = [_VALUE, *(f"order_{i}" for i in range(1, len(read) + 1))]
    if read:
        query.set("expressions", [*query.expressions, *read])
    column = _column(_VALUE)
    gathers = exp.Order(this=column, expressions=order) if order else column
    alias = exp.TableAlias(
        this=exp.to_identifier(_TABLE), columns=[exp.to_identifier(name) for name in names]
    )
    select = exp.Select(
        expressions=[exp.Anonymous(this="array_agg", expressions=[gathers])],
        from_=exp.From(this=exp.Subquery(this=query, alias=alias)),
    )
    empty = exp.Literal.string("{}")
    return exp.Anonymous(this="coalesce", expressions=[exp.Subquery(this=select), empty])


def _order(query: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The order by columns of the gathered rows, and what these have to have for it."""
    written = query.args.get("order")
    order: list[exp.Expr] = []
    read: list[exp.Expr] = []
    for entry in () if written is None else written.expressions:
        column = _column(_VALUE)
        if not _means_the_value(entry.this, query):
            read.append(entry.this.copy())
            column = _column(f"order_{len(read)}")
        moved = entry.copy()
        moved.set("this", column)
        order.append(moved)
    return order, read


def _means_the_value(node: exp.Expr, query: exp.Expr) -> bool:
    """Whether an entry of ORDER BY is the one column of the query, by number, name or form."""
    if not isinstance(query, exp.Select) or query.args.get("distinct") is not None:
        return True
    if isinstance(node, exp.Literal) or not query.expressions:
        return True
    first = query.expressions[0]
    bare = isinstance(node, exp.Column) and node.args.get("table") is None
    if bare and not first.is_star and name_of(node.this) == output_name(first):
        return True
    return bool(node == first.unalias())


def _column(name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name), table=exp.to_identifier(_TABLE))


def percentiles(
    node: exp.Anonymous, within: exp.Order, only: exp.Expr | None, fractions: Sequence[exp.Expr]
) -> exp.Expr:
    """The expression that one call for several fractions stands for; `only` is its FILTER."""

    def filtered(call: exp.Expr) -> exp.Expr:
        return call if only is None else exp.Filter(this=call, expression=only.copy())

    calls = [
        filtered(
            exp.WithinGroup(
                this=exp.Anonymous(this=node.this, expressions=[fraction.copy()]),
                expression=within.copy(),
            )
        )
        for fraction in fractions
    ]
    values = within.expressions[0].this.copy()
    count = filtered(exp.Anonymous(this="count", expressions=[values]))
    some = exp.GT(this=count, expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=some, true=exp.Array(expressions=calls))])
