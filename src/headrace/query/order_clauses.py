"""What ORDER BY, LIMIT, OVER and their like may be made of, and where an order is read at all."""

from __future__ import annotations

from sqlglot import exp

ORDERING: dict[type[exp.Expr], frozenset[str]] = {
    # `this` is the last argument of an aggregate call that the order stands behind.
    exp.Order: frozenset({"this", "expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows", "with_ties"}),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "alias", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side", "exclude"}),
}


def order_counts(query: exp.Expr) -> bool:
    """Whether the order of the query's rows decides which rows it has."""
    return distinct_on(query) is not None or any(
        query.args.get(name) is not None for name in ("limit", "offset")
    )


def distinct_on(query: exp.Expr) -> exp.Expr | None:
    """What DISTINCT ON names."""
    distinct = query.args.get("distinct")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    assert on is None or isinstance(on, exp.Expr)
    return on


def is_read(node: exp.Expr) -> bool:
    """Whether the binder looks at the node: at all but an order that decides nothing."""
    query = node.parent
    if node.arg_key != "order" or not isinstance(query, exp.Query):
        return True
    # Parentheses hand what is written behind them to the query inside.
    around = query.parent
    if isinstance(around, exp.Subquery) and around.this is query and order_counts(around):
        return True
    while isinstance(around, exp.Subquery):
        around = around.parent
    return order_counts(query) or is_array_of_query(around)


def is_array_of_query(node: exp.Expr | None) -> bool:
    """Whether the node is `ARRAY(SELECT …)`, whose elements have the order of the query's rows."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "array":
        return False
    return len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query)
