"""Queries inside expressions: EXISTS, IN, ANY, ALL and scalar subqueries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from headrace.functions import chain
from headrace.plan.scalar import Column, Outer, Scalar, Subquery
from headrace.query.block import Block
from headrace.query.context import Context
from headrace.query.literals import Bound, Untyped
from headrace.query.operations import compare, negation
from headrace.query.refusal import refuse
from headrace.query.scope import Scope

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
        return Subquery("exists", self._block(_rows_alone(node.this), scope).plan)

    def scalar(self, node: exp.Expr, scope: Scope) -> Scalar:
        """The value of `(SELECT …)`."""
        block = self._block(node, scope)
        if len(block.names) != 1:
            raise refuse("invalid-query", "subquery must return only one column", node)
        return Subquery("scalar", block.plan)

    def any(
        self, name: str, left: Sequence[Bound], query: exp.Expr, node: exp.Expr, scope: Scope
    ) -> Scalar:
        """`left name ANY (query)`, column by column where there are several."""
        block = self._block(query, scope)
        columns = block.plan.columns
        if len(columns) != len(left):
            few = "few" if len(columns) < len(left) else "many"
            raise refuse("invalid-query", f"subquery has too {few} columns", node)
        if len(left) > 1 and name not in ("=", "<>"):
            raise refuse("unsupported-query", f"{name} on row values is not maintained", node)
        terms = [
            compare(name, one if isinstance(one, Untyped) else Outer(one), column, node)
            for one, column in zip(left, columns, strict=True)
        ]
        return Subquery("any", block.plan, chain("or" if name == "<>" else "and", terms))

    def all(
        self, name: str, left: Sequence[Bound], query: exp.Expr, node: exp.Expr, scope: Scope
    ) -> Scalar:
        """`left name ALL (query)`: not ANY of the opposite."""
        return negation(self.any(NEGATED[name], left, query, node, scope))

    def _block(self, node: exp.Expr, scope: Scope) -> Block:
        block = self._bind(unwrapped(node), self._context.inside(scope))
        self.quotients |= block.quotients
        return block


def _rows_alone(node: exp.Expr) -> exp.Expr:
    """EXISTS asks for rows alone: columns are not computed, and the first rows do as well as all.

    A call may be an aggregate or give rows, so a select list with one stays.
    """
    query = unwrapped(node)
    if not isinstance(query, exp.Select):
        return query
    query = query.copy()
    if _has_some_limit(query):
        query.set("limit", None)
        query.set("order", None)
    read = ("distinct", "group", "having", "order")
    called = any(item.find(exp.Func) for item in query.expressions)
    if not called and not any(query.args.get(clause) for clause in read):
        query.set("expressions", [exp.Literal.number(1)])
    return query


def _has_some_limit(query: exp.Select) -> bool:
    """Whether the query is cut to a number of its first rows that is not 0."""
    limit = query.args.get("limit")
    count = limit.args.get("expression") if isinstance(limit, exp.Limit) else None
    constant = isinstance(count, exp.Literal) and count.name.isdigit() and int(count.name) > 0
    return constant and not query.args.get("offset")


def unwrapped(node: exp.Expr) -> exp.Expr:
    """The query without the parentheses that belong to the expression around it."""
    while isinstance(node, exp.Subquery) and _is_bare(node):
        node = node.this
    return node


def _is_bare(node: exp.Subquery) -> bool:
    around = ("alias", "joins", "order", "limit", "offset", "with_")
    return not any(node.args.get(name) for name in around)


def quantified(node: exp.Expr) -> tuple[str, exp.Expr] | None:
    """`any` or `all` and the query, if the right side of a comparison is one of these."""
    match node:
        case exp.Any(this=exp.Query() | exp.Values() as query):
            return "any", query
        case exp.All(this=exp.Query() | exp.Values() as query):
            return "all", query
        case exp.Anonymous(this=str() as name, expressions=[exp.Query() | exp.Values() as query]):
            return (name.lower(), query) if name.lower() in ("all", "any", "some") else None
    return None
