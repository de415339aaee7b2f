"""VALUES: rows spelled out, each column of the one type that PostgreSQL gives its entries."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.algebra.scalar import Scalar
from headrace.plan.operators import Values
from headrace.query.block import Block
from headrace.query.coerce import as_type, common_to
from headrace.query.context import Context
from headrace.query.expressions import Expressions
from headrace.query.grouping import is_quotient
from headrace.query.literals import Bound
from headrace.query.refusal import located, refuse
from headrace.query.scope import Scope
from headrace.query.subqueries import BindQuery, Inner

ONE_ROW = Values((), ((),))
"""The row that a SELECT without FROM computes its columns for."""


def bind_values(node: exp.Values, context: Context, inner: BindQuery) -> Block:
    """Return the rows under the names column1, column2, …; `inner` binds the queries in them."""
    scope = nothing_in(context, inner)
    expressions = Expressions(scope, "VALUES")
    rows = [[expressions.bind(entry) for entry in row.expressions] for row in node.expressions]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        message = "VALUES lists must all be the same length"
        raise refuse("invalid-query", message, node)
    cells = list(zip(*(_typed(column, node) for column in zip(*rows, strict=True)), strict=True))
    names = tuple(f"column{i}" for i in range(1, width + 1))
    columns = tuple(
        context.ids.computed(name, cell.type) for name, cell in zip(names, cells[0], strict=True)
    )
    below = scope.all_quotients
    quotients = {columns[i] for row in cells for i, c in enumerate(row) if is_quotient(c, below)}
    return Block(Values(columns, tuple(cells)), names, frozenset(quotients))


def nothing_in(context: Context, inner: BindQuery) -> Scope:
    """Return the scope of expressions that have no FROM, only what is around their query."""
    return Scope((), (), enclosing=context.enclosing, inner=Inner(context, inner))


def _typed(entries: Sequence[Bound], node: exp.Values) -> tuple[Scalar, ...]:
    with located(node):
        common = common_to(entries, "VALUES", node)
        return tuple(as_type(entry, common) for entry in entries)
