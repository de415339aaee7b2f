"""A query's plan as ordinary Spark SQL over ordinary bags: no weights, no state, no deltas.

`verify` recomputes a stream table by this query, which shares nothing with the incremental plan but
the meaning of scalar expressions, so the two check each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from headrace.algebra.scalar import Column
from headrace.functions.function import spark_cast, spark_function
from headrace.plan.operators import (
    Aggregate,
    Filter,
    FullJoin,
    Join,
    Negate,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Replicate,
    Scan,
    Top,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from headrace.render.groups import rendered_call
from headrace.render.matches import matched_with
from headrace.render.partitions import native_top, native_window
from headrace.render.pieces import WEIGHT, Nesting, as_table, joined
from headrace.render.plans import rendered, summed
from headrace.render.rows import copied, unnest, values
from headrace.render.scalars import column, identifier, render_scalar, text_of
from headrace.types import BIGINT


def render_native(
    plan: Operator, names: tuple[str, ...], plain: frozenset[str] = frozenset()
) -> str:
    """Return the query over the relations' states, its columns under `names`.

    Conditions on columns of relations that are `plain` reach the files.
    """
    return text_of(_native(plan, names, plain))


def render_new(plan: Operator, names: tuple[str, ...], known: Operator) -> str:
    """Return every row of the query once that `known` does not have, by Spark's own EXCEPT."""
    query = exp.Except(this=_native(plan, names), expression=_native(known, names), distinct=True)
    return text_of(query)


def render_difference(
    plan: Operator,
    stored: Operator,
    names: tuple[str, ...],
    where: Callable[[Sequence[exp.Expression]], exp.Expression] | None = None,
) -> str:
    """Return rows of the query that `stored` lacks (weight > 0), and the reverse (< 0).

    The columns are `_weight` and `names`; an empty result is a proof of equality as bags. With
    `where`, a condition on the columns, it is one for the rows that fulfil it.
    """
    ids = [column(c.id) for c in stored.columns]
    unit_weight = exp.alias_(spark_cast(exp.Literal.number(1), BIGINT), WEIGHT, quoted=True)
    query = _native(plan, tuple(c.id for c in stored.columns))
    recomputed = exp.Select(expressions=[unit_weight, *ids]).from_(
        as_table(query, "recomputed"), copy=False
    )
    both = exp.Union(this=recomputed, expression=rendered(Negate(stored)), distinct=False)
    difference = summed(stored.columns, as_table(both, "both"))
    select_list = [
        exp.alias_(column(c.id), name, quoted=True)
        for c, name in zip(stored.columns, names, strict=True)
    ]
    whole = exp.Select(expressions=[column(WEIGHT), *select_list])
    whole = whole.from_(as_table(difference, "difference"), copy=False)
    if where is not None:
        whole = whole.where(where([column(c.id) for c in stored.columns]), copy=False)
    return text_of(whole)


def _native(
    plan: Operator, names: tuple[str, ...], plain: frozenset[str] = frozenset()
) -> exp.Query:
    nesting = Nesting()

    def subquery(node: Operator) -> exp.Expression:
        return nesting.table(lambda: query(node))

    def query(node: Operator) -> exp.Query:
        match node:
            case Scan():
                return _expanded(node, plain)
            case Filter(child=child, condition=condition):
                return (
                    _select(node)
                    .from_(subquery(child), copy=False)
                    .where(render_scalar(condition), copy=False)
                )
            case Project(child=child, outputs=outputs):
                select_list = [_named(render_scalar(scalar), c) for c, scalar in outputs]
                return exp.Select(expressions=select_list).from_(subquery(child), copy=False)
            case Join(left=left, right=right, condition=condition):
                on = None if condition is None else render_scalar(condition)
                kind = "cross" if on is None else "inner"
                select = _select(node).from_(subquery(left), copy=False)
                return joined(select, kind, subquery(right), on)
            case OuterSemiAntiJoin(left=left, right=right) | FullJoin(left=left, right=right):
                return matched_with(
                    node, _select(node).from_(subquery(left), copy=False), subquery(right)
                )
            case Values():
                return values(node, None)
            case Unnest(child=child):
                return unnest(node, subquery(child), None)
            case Replicate(child=child):
                return copied(node, subquery(child))
            case UnionAll(inputs=inputs):
                union: exp.Query = query(inputs[0])
                for branch in inputs[1:]:
                    union = exp.Union(this=union, expression=query(branch), distinct=False)
                return union
            case Aggregate(child=child, keys=keys, calls=calls):
                select_list = [column(key.id) for key in keys]
                select_list += [_named(rendered_call(c), c.output) for c in calls]
                grouped = exp.Select(expressions=select_list).from_(subquery(child), copy=False)
                return (
                    grouped.group_by(*(column(key.id) for key in keys), copy=False)
                    if keys
                    else grouped
                )
            case Window(child=child):
                return native_window(node, subquery(child), nesting.alias)
            case Top(child=child):
                return native_top(node, subquery(child), nesting.alias)
        raise TypeError(f"{type(node).__name__} is no part of a query")

    select_list = [
        exp.alias_(column(c.id), name, quoted=True)
        for c, name in zip(plan.columns, names, strict=True)
    ]
    return nesting.whole(exp.Select(expressions=select_list).from_(subquery(plan), copy=False))


def _expanded(scan: Scan, plain: frozenset[str]) -> exp.Select:
    """Return the relation as an ordinary table: every row as often as its weights sum up to."""
    copies = spark_function("sequence", spark_cast(exp.Literal.number(1), BIGINT), column(WEIGHT))
    one_each = exp.Lateral(
        this=spark_function("explode", copies),
        view=True,
        alias=exp.TableAlias(this=identifier("copies"), columns=[identifier("copy")]),
    )
    rows = summed(scan.columns, as_table(rendered(scan), "q1"), plain)
    return _select(scan).from_(as_table(rows, "summed"), copy=False).lateral(one_each, copy=False)


def _select(node: Operator) -> exp.Select:
    select_list = [column(c.id) for c in node.columns]
    return exp.Select(expressions=select_list or [exp.Literal.number(1)])


def _named(expression: exp.Expression, c: Column) -> exp.Expression:
    return exp.Alias(this=expression, alias=identifier(c.id))
