"""A function that gives rows in the select list: the same as that function in FROM.

    SELECT a, unnest(b) FROM t WHERE c   =   SELECT a, u FROM t, unnest(b) AS u WHERE c

It comes after WHERE, and a star does not stand for it.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headrace.algebra.scalar import Subquery
from headrace.functions.tables import TABLE_FUNCTION_BY_NAME
from headrace.plan.lateral import Lateral
from headrace.query.context import Context
from headrace.query.from_items import Item
from headrace.query.grouping import Aggregates
from headrace.query.identifiers import name_of
from headrace.query.inner import BindQuery
from headrace.query.refusal import refuse
from headrace.query.scope import FromTable, Visible
from headrace.query.table_functions import bind_table_function

_HIDDEN = "rows of a function"


def rows_in_select(
    select: exp.Select, item: Item, context: Context, inner: BindQuery
) -> tuple[exp.Select, Item]:
    """The block with such a function in its FROM; its own FROM is bound as `item`."""
    found = [(i, call) for i, node in enumerate(select.expressions) for call in _calls(node)]
    if not found:
        return select, item
    (place, call), *others = found
    name = name_of(call.this)
    if others or call is not _value(select.expressions[place]) or _is_computed(select):
        message = f"{name} beside other rows, groups or windows is not maintained"
        hint = "Write the function in FROM of an inner query."
        raise refuse("unsupported-query", message, call, hint)
    block = bind_table_function(exp.Table(this=call.copy()), context.inside(item.scope), inner)
    if len(block.names) > 1:
        message = f"{name} gives rows of several columns"
        raise refuse("unsupported-query", message, call, "Write the function in FROM.")
    (column,) = block.plan.columns
    source = FromTable(_HIDDEN, None, (Visible(name, column, column.type.sql),))
    scope = replace(item.scope, sources=(*item.scope.sources, source))
    plan = Lateral(item.plan, Subquery("rows", block.plan))
    shown = [exp.to_identifier(part, quoted=True) for part in (name, _HIDDEN)]
    select = select.copy()
    target = select.expressions[place]
    _value(target).replace(exp.Column(this=shown[0], table=shown[1]))
    return select, replace(item, plan=plan, scope=scope)


def _value(target: exp.Expr) -> exp.Expr:
    """What an entry of the select list computes."""
    target = target.this if isinstance(target, exp.Alias) else target
    while isinstance(target, exp.Paren):
        target = target.this
    return target


def _calls(target: exp.Expr) -> list[exp.Anonymous]:
    """The functions that give rows, those of inner queries left out."""
    found: list[exp.Anonymous] = []
    waiting: list[exp.Expr] = [target]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Anonymous) and _gives_rows(name_of(node.this)):
            found.append(node)
        if not isinstance(node, exp.Query):
            waiting.extend(node.iter_expressions())
    return found


def _gives_rows(name: str) -> bool:
    return name == "unnest" or (name in TABLE_FUNCTION_BY_NAME and name != "rows")


def _is_computed(select: exp.Select) -> bool:
    """Whether the block's rows are groups, or have windows."""
    if select.args.get("group") or select.args.get("having"):
        return True
    calls = (c for node in select.expressions for c in node.find_all(exp.Anonymous, exp.Window))
    return any(isinstance(c, exp.Window) or Aggregates.knows(name_of(c.this)) for c in calls)
