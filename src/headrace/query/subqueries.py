"""Queries inside expressions: EXISTS, IN, ANY, ALL, scalar subqueries, arrays of rows.

Arrays of a query's rows, and percentiles for an array of fractions, are rewritten:

ARRAY(SELECT x FROM … ORDER BY y)
    coalesce((SELECT array_agg(v ORDER BY o1) FROM (SELECT x, y FROM …) AS q (v, o1)), '{}')
percentile_cont(ARRAY[a, b]) WITHIN GROUP (ORDER BY x)
    CASE WHEN count(x) > 0 THEN ARRAY[percentile_cont(a) …, percentile_cont(b) …] END
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from headrace.algebra.scalar import Column, Literal, Outer, Scalar, Subquery
from headrace.functions import chain
from headrace.query.block import Block
from headrace.query.context import Context
from headrace.query.identifiers import name_of
from headrace.query.literals import Bound, Untyped
from headrace.query.operations import compare, negation
from headrace.query.output_names import output_name
from headrace.query.refusal import refuse
from headrace.query.scope import Scope
from headrace.types import BIGINT

BindQuery = Callable[[exp.Expr, Context], Block]

NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class Inner:
    """Binds the queries inside the expressions of one block.

    `quotients` are those of their columns that come from a numeric division.
    """

    def __init__(self, context: Context, bind: BindQuery) -> None:
        self._context = context
        self._bind = bind
        self.quotients: set[Column] = set()

    def exists(self, node: exp.Exists, scope: Scope) -> Scalar:
        """Return EXISTS; with an OFFSET, a comparison of the number of rows."""
        query, skipped = _rows_alone(node.this)
        if not skipped:
            return Subquery("exists", self._block(query, scope).plan)
        count = self.scalar(_count_of(query), scope)
        return compare(">", count, Literal(skipped, BIGINT), node)

    def scalar(self, node: exp.Expr, scope: Scope) -> Scalar:
        """Return the value of `(SELECT …)`."""
        block = self._block(node, scope)
        if len(block.names) != 1:
            raise refuse("invalid-query", "subquery must return only one column", node)
        return Subquery("scalar", block.plan)

    def any(
        self, name: str, left: Sequence[Bound], query: exp.Expr, node: exp.Expr, scope: Scope
    ) -> Scalar:
        """Return `left name ANY (query)`, column by column where there are several."""
        block = self._block(query, scope)
        columns = block.plan.columns
        if len(columns) != len(left):
            few = "few" if len(columns) < len(left) else "many"
            raise refuse("invalid-query", f"subquery has too {few} columns", node)
        if len(left) > 1 and name not in ("=", "<>"):
            raise refuse("unsupported-query", f"{name} on row values is not maintained", node)
        terms = [
            compare(name, value if isinstance(value, Untyped) else Outer(value), column, node)
            for value, column in zip(left, columns, strict=True)
        ]
        return Subquery("any", block.plan, chain("or" if name == "<>" else "and", terms))

    def all(
        self, name: str, left: Sequence[Bound], query: exp.Expr, node: exp.Expr, scope: Scope
    ) -> Scalar:
        """Return `left name ALL (query)`: not ANY of the opposite."""
        return negation(self.any(NEGATED[name], left, query, node, scope))

    def _block(self, node: exp.Expr, scope: Scope) -> Block:
        block = self._bind(unwrapped(node), self._context.inside(scope))
        self.quotients |= block.quotients
        return block


def _rows_alone(node: exp.Expr) -> tuple[exp.Expr, int]:
    """Return the query of EXISTS without what does not matter to it, and how many rows it skips.

    EXISTS asks for rows alone: their order does not count, the first rows do as well as all, and
    columns are not computed. A call may be an aggregate or give rows, so a select list with one
    stays.
    """
    query, skipped = unwrapped(node), 0
    if not isinstance(query, exp.Query):
        return query, 0
    query = query.copy()
    limit, offset = _count(query, "limit"), _count(query, "offset")
    if limit and offset is not None:
        skipped = offset
        for clause in ("limit", "offset", "order"):
            query.set(clause, None)
    read = ("distinct", "group", "having", "order")
    called = any(item.find(exp.Func) for item in query.expressions)
    if not isinstance(query, exp.Select) or called:
        return query, skipped
    if not any(query.args.get(clause) for clause in read):
        query.set("expressions", [exp.Literal.number(1)])
    return query, skipped


def _count(query: exp.Query, clause: str) -> int | None:
    """Return the number that LIMIT or OFFSET names; None if it is no plain number.

    LIMIT ALL counts as more than 0.
    """
    clause_node = query.args.get(clause)
    if clause_node is None:
        return 1 if clause == "limit" else 0
    number = clause_node.args.get("count" if isinstance(clause_node, exp.Fetch) else "expression")
    if number is None:
        return 1
    constant = isinstance(number, exp.Literal) and number.name.isdigit()
    return int(number.name) if constant else None


def _count_of(query: exp.Expr) -> exp.Select:
    """Return `SELECT count(*) FROM (query)`."""
    count = exp.Anonymous(this="count", expressions=[exp.Star()])
    rows = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("skipped")))
    return exp.Select(expressions=[count], from_=exp.From(this=rows))


def unwrapped(node: exp.Expr) -> exp.Expr:
    """Return the query without the parentheses that belong to the expression around it."""
    while isinstance(node, exp.Subquery) and _is_bare(node):
        node = node.this
    return node


def _is_bare(node: exp.Subquery) -> bool:
    around = ("alias", "joins", "order", "limit", "offset", "with_")
    return not any(node.args.get(name) for name in around)


def quantified(node: exp.Expr) -> tuple[str, exp.Expr] | None:
    """Return `any` or `all` and the query, if the right side of a comparison is one of these."""
    match node:
        case exp.Any(this=exp.Query() | exp.Values() as query):
            return "any", query
        case exp.All(this=exp.Query() | exp.Values() as query):
            return "all", query
        case exp.Anonymous(this=str() as name, expressions=[exp.Query() | exp.Values() as query]):
            return (name.lower(), query) if name.lower() in ("all", "any", "some") else None
    return None


_TABLE, _VALUE = "gathered", "value"


def gathered(node: exp.Anonymous) -> exp.Expr:
    """Return the expression that `ARRAY(SELECT …)` stands for."""
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
    """Return the order by columns of the gathered rows, and what these have to have for it."""
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
    """Return whether an entry of ORDER BY is the only column of the query."""
    if not isinstance(query, exp.Select):
        return True
    distinct = query.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is None:
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
    """Return the expression that one call for several fractions stands for.

    `only` is its FILTER.
    """

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
