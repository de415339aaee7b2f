"""Functions that return rows, in FROM and in the select list.

A function in FROM is a row of `TABLE_FUNCTIONS` over the items to its left. It is bound as a query
of its own over one row, which reads the enclosing query through `Outer`.

A function in the select list that returns rows equals the same function in FROM:

    SELECT a, unnest(b) FROM t WHERE c   =   SELECT a, u FROM t, unnest(b) AS u WHERE c

Such a function is evaluated after WHERE, and a star does not include it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TypeGuard

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar, Subquery
from headrace.functions import cast
from headrace.functions.tables import TABLE_FUNCTION_BY_NAME
from headrace.plan.operators import Unnest
from headrace.plan.surface_operators import Lateral
from headrace.query.array_expressions import listed_items
from headrace.query.block import Block
from headrace.query.coerce import settled, unified
from headrace.query.context import Context
from headrace.query.expressions import Expressions
from headrace.query.grouping import Aggregates
from headrace.query.identifiers import name_of
from headrace.query.joins import Item
from headrace.query.literals import Bound, Untyped, typed
from headrace.query.refusal import located, refuse
from headrace.query.scope import FromTable, Visible
from headrace.query.subqueries import BindQuery
from headrace.query.values import ONE_ROW, nothing_in
from headrace.types import BIGINT, INTEGER, Type

JSONB, TIMESTAMP, TIMESTAMPTZ = Type("jsonb"), Type("timestamp"), Type("timestamptz")
_HINT = "See docs/sql.md for the functions in FROM that are maintained."


def function_of(node: exp.Expr) -> exp.Anonymous | None:
    """Return the call, if an item of FROM is a function."""
    match node:
        case exp.Table(this=exp.Anonymous() as call) | exp.Lateral(this=exp.Anonymous() as call):
            return call
        case _:
            return None


def bind_table_function(node: exp.Expr, context: Context, inner: BindQuery) -> Block:
    """Return the function's rows over one row. Its names are those that PostgreSQL gives."""
    call = function_of(node)
    assert call is not None
    name = name_of(call.this)
    schema = node.args.get("db")
    if schema is not None and name_of(schema) != "pg_catalog":
        raise _not_maintained(f"{name_of(schema)}.{name}", call)
    expressions = Expressions(nothing_in(context, inner), "functions in FROM")
    with located(call):
        plan, names = _rows(name, call, expressions, context)
    alias = node.args.get("alias")
    if len(plan.outputs) == 1 and not TABLE_FUNCTION_BY_NAME[plan.function].columns:
        names = (names[0] if alias is None else name_of(alias.this),)
    if node.args.get("ordinality"):
        plan = replace(plan, ordinality=context.ids.computed("ordinality", BIGINT))
        names = (*names, "ordinality")
    return Block(plan, names)


def _rows(
    name: str, call: exp.Anonymous, expressions: Expressions, context: Context
) -> tuple[Unnest, tuple[str, ...]]:
    arguments = call.expressions
    if name == "unnest":
        split = _split_text(arguments)
        if split is None:
            return _unnested(call, expressions, context)
        bounds = [settled(expressions.bind(each)) for each in split.expressions]
        return _called("string_to_table", bounds, call, context), (name,)
    if name not in TABLE_FUNCTION_BY_NAME or name == "rows":
        raise _not_maintained(name, call)
    scalars = _typed(name, [expressions.bind(argument) for argument in arguments])
    plan = _called(name, scalars, call, context)
    return plan, TABLE_FUNCTION_BY_NAME[name].columns or (name,)


def _called(
    name: str, arguments: Sequence[Scalar], call: exp.Anonymous, context: Context
) -> Unnest:
    function = TABLE_FUNCTION_BY_NAME[name]
    types = function.types_of(arguments) if arguments else None
    if types is None:
        type_names = ", ".join(argument.type.sql for argument in arguments)
        message = f"{name}({type_names}) has no exact counterpart on Spark"
        raise refuse("unsupported-function", message, call, function.note or _HINT)
    columns = function.columns or (name,)
    outputs = (context.ids.computed(c, t) for c, t in zip(columns, types, strict=True))
    return Unnest(ONE_ROW, name, tuple(arguments), tuple(outputs))


def _typed(name: str, bounds: Sequence[Bound]) -> list[Scalar]:
    """Return the arguments with the types that PostgreSQL gives to bare constants among them."""
    if name.startswith("jsonb_"):
        return [typed(b, JSONB) if isinstance(b, Untyped) else b for b in bounds]
    if name != "generate_series":
        return [settled(bound) for bound in bounds]
    types = [bound.type for bound in bounds if not isinstance(bound, Untyped)]
    if any(type_.is_moment for type_ in types):
        ends = TIMESTAMP if TIMESTAMP in types else TIMESTAMPTZ
        bounds = [cast(b, ends) if _is_date(b) else b for b in bounds]
        requested_types = [ends, ends, Type("interval")]
    else:
        requested_types = [*(types or [INTEGER])] * 3
        bounds = [*bounds, Literal(1, INTEGER)] if len(bounds) == 2 else bounds
    return [
        typed(bound, type_) if isinstance(bound, Untyped) else bound
        for bound, type_ in zip(bounds, requested_types, strict=False)
    ]


def _is_date(bound: Bound) -> TypeGuard[Scalar]:
    return not isinstance(bound, Untyped) and bound.type.kind == "date"


def _split_text(arguments: Sequence[exp.Expr]) -> exp.Anonymous | None:
    """Return the string_to_array call inside unnest: both together are string_to_table."""
    match arguments:
        case [exp.Anonymous(this=str() as name) as call] if name_of(name) == "string_to_array":
            return call
        case _:
            return None


def _unnested(
    call: exp.Anonymous, expressions: Expressions, context: Context
) -> tuple[Unnest, tuple[str, ...]]:
    """Return the items of arrays that are spelled out as rows; other arrays are computed first."""
    spelled = [listed_items(argument) for argument in call.expressions]
    names = ("unnest",) * len(spelled)
    listed = [items for items in spelled if items is not None]
    if len(listed) == len(spelled):
        lists = [unified(list(map(expressions.bind, items)), "ARRAY", call) for items in listed]
        return _listed(lists, context), names
    arrays = [settled(expressions.bind(argument)) for argument in call.expressions]
    types = TABLE_FUNCTION_BY_NAME["unnest"].types_of(arrays)
    if types is None:
        type_names = ", ".join(array.type.sql for array in arrays)
        raise refuse("invalid-query", f"unnest({type_names}) does not exist", call)
    outputs = tuple(context.ids.computed("unnest", type_) for type_ in types)
    return Unnest(ONE_ROW, "unnest", tuple(arrays), outputs), names


def _listed(lists: Sequence[tuple[Scalar, ...]], context: Context) -> Unnest:
    """Return lists side by side, row by row; a shorter one is filled with NULLs."""
    outputs = tuple(context.ids.computed("unnest", items[0].type) for items in lists)
    cells: list[Scalar] = []
    for row in zip_longest(*lists):
        for cell, output in zip(row, outputs, strict=True):
            cells.append(Literal(None, output.type) if cell is None else cell)
    return Unnest(ONE_ROW, "rows", tuple(cells), outputs)


def _not_maintained(name: str, call: exp.Anonymous) -> Exception:
    return refuse("unsupported-function", f"{name} in FROM is not maintained", call, _HINT)


_HIDDEN = "rows of a function"


def rows_in_select(
    select: exp.Select, item: Item, context: Context, inner: BindQuery
) -> tuple[exp.Select, Item]:
    """Return the block with such a function in its FROM; its own FROM is bound as `item`."""
    placed_calls = [(i, call) for i, node in enumerate(select.expressions) for call in _calls(node)]
    if not placed_calls:
        return select, item
    (place, call), *others = placed_calls
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
    identifiers = [exp.to_identifier(part, quoted=True) for part in (name, _HIDDEN)]
    select = select.copy()
    target = select.expressions[place]
    _value(target).replace(exp.Column(this=identifiers[0], table=identifiers[1]))
    return select, replace(item, plan=plan, scope=scope)


def _value(target: exp.Expr) -> exp.Expr:
    """Return the expression that an entry of the select list computes."""
    target = target.this if isinstance(target, exp.Alias) else target
    while isinstance(target, exp.Paren):
        target = target.this
    return target


def _calls(target: exp.Expr) -> list[exp.Anonymous]:
    """Return the functions that give rows, those of inner queries left out."""
    calls: list[exp.Anonymous] = []
    waiting: list[exp.Expr] = [target]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Anonymous) and _gives_rows(name_of(node.this)):
            calls.append(node)
        if not isinstance(node, exp.Query):
            waiting.extend(node.iter_expressions())
    return calls


def _gives_rows(name: str) -> bool:
    return name == "unnest" or (name in TABLE_FUNCTION_BY_NAME and name != "rows")


def _is_computed(select: exp.Select) -> bool:
    """Return whether the block's rows are groups, or have windows."""
    if select.args.get("group") or select.args.get("having"):
        return True
    calls = (c for node in select.expressions for c in node.find_all(exp.Anonymous, exp.Window))
    return any(isinstance(c, exp.Window) or Aggregates.knows(name_of(c.this)) for c in calls)
