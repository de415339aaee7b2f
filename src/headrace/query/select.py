"""One SELECT block as a plan.

Aggregate (DISTINCT) over Project (select list) over Filter (HAVING) over Aggregate
over Project (keys and arguments) over Filter (WHERE) over Joins of Scans and inner queries
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.plan.operators import Aggregate, Filter, Operator, Project
from headrace.plan.scalar import Column, Scalar, columns_of
from headrace.query.block import Block, distinct
from headrace.query.coerce import settled
from headrace.query.context import Context
from headrace.query.expressions import Expressions
from headrace.query.from_clause import BindQuery, FromClause, Item
from headrace.query.grouping import Aggregates, Groups, is_quotient
from headrace.query.identifiers import name_of
from headrace.query.ids import ColumnIds
from headrace.query.literals import Untyped
from headrace.query.output_names import output_name
from headrace.query.refusal import refuse
from headrace.query.scope import Scope, find


@dataclass(frozen=True)
class Target:
    """An entry of the select list after stars are expanded; `untyped` if it is a bare constant."""

    name: str
    scalar: Scalar
    node: exp.Expr
    untyped: Untyped | None = None


def bind_select(select: exp.Select, context: Context, inner: BindQuery) -> Block:
    """The block's plan; ids are taken in the order of FROM, then of the text.

    `inner` binds the queries in FROM.
    """
    ids = context.ids
    item = FromClause(context, inner).bind(select)
    where = select.args.get("where")
    if where is not None:
        condition = Expressions(item.scope, "WHERE").condition(where.this)
        item = replace(item, plan=Filter(item.plan, condition))
    aggregates = Aggregates(ids)
    targets = _targets(select, item.scope, aggregates)
    keys = _group_keys(select, item.scope, targets)
    having = _having(select, item.scope, aggregates)
    plan = item.plan
    quotients = item.scope.quotients
    if aggregates or keys or having is not None:
        plan, targets, quotients = _grouped(item, targets, keys, having, aggregates, ids)
    outputs = tuple((ids.computed(t.name, t.scalar.type), t.scalar) for t in targets)
    block = Block(
        Project(plan, outputs),
        tuple(target.name for target in targets),
        frozenset(column for column, scalar in outputs if is_quotient(scalar, quotients)),
        {i: target.untyped for i, target in enumerate(targets) if target.untyped is not None},
    )
    if select.args.get("distinct") is None:
        return block
    for target in targets:
        _require_comparable(target.scalar, "DISTINCT", target.node)
    return replace(block, plan=distinct(block.plan), untyped={})


def _targets(select: exp.Select, scope: Scope, aggregates: Aggregates) -> list[Target]:
    expressions = Expressions(scope, "SELECT", aggregates)
    targets: list[Target] = []
    for node in select.expressions:
        inner, name = node, None
        if isinstance(node, exp.Alias):
            inner, name = node.this, name_of(node.args["alias"])
        star = _starred(inner, scope)
        if star is not None:
            targets.extend(star)
        else:
            bound = expressions.bind(inner)
            untyped = bound if isinstance(bound, Untyped) else None
            targets.append(Target(name or output_name(inner), settled(bound), inner, untyped))
    if not targets:
        raise refuse("unsupported-query", "a query without columns is not maintained", select)
    return targets


def _starred(node: exp.Expr, scope: Scope) -> list[Target] | None:
    """The columns that `*` or `t.*` stands for."""
    if isinstance(node, exp.Star):
        columns = scope.columns
    elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        columns = scope.source(node).columns
    else:
        return None
    return [Target(column.name, scope.usable(column, node), node) for column in columns]


def _group_keys(
    select: exp.Select, scope: Scope, targets: Sequence[Target]
) -> list[tuple[Scalar, str]]:
    """GROUP BY by position, by input column, by output name, or by expression, in that order."""
    group = select.args.get("group")
    keys: list[tuple[Scalar, str]] = []
    for node in () if group is None else group.expressions:
        scalar = _group_key(node, scope, targets)
        _require_comparable(scalar, "GROUP BY", node)
        keys.append((scalar, output_name(node)))
    return keys


def _group_key(node: exp.Expr, scope: Scope, targets: Sequence[Target]) -> Scalar:
    if isinstance(node, exp.Literal):
        if node.is_string or not node.name.isdigit():
            raise refuse("invalid-query", "non-integer constant in GROUP BY", node)
        if not 1 <= int(node.name) <= len(targets):
            message = f"GROUP BY position {node.name} is not in select list"
            raise refuse("invalid-query", message, node)
        return targets[int(node.name) - 1].scalar
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        name = name_of(node.this)
        if not find(name, scope.columns):
            named = {target.scalar for target in targets if target.name == name}
            if len(named) > 1:
                raise refuse("ambiguous-column", f'GROUP BY "{name}" is ambiguous', node)
            if named:
                return named.pop()
    return settled(Expressions(scope, "GROUP BY").bind(node))


def _require_comparable(scalar: Scalar, clause: str, node: exp.Expr) -> None:
    if scalar.type.comparison == "none":
        message = f"{clause} on {scalar.type.sql} is not maintained"
        raise refuse("unsupported-type", message, node)


def _having(
    select: exp.Select, scope: Scope, aggregates: Aggregates
) -> tuple[Scalar, exp.Expr] | None:
    having = select.args.get("having")
    if having is None:
        return None
    return Expressions(scope, "HAVING", aggregates).condition(having.this), having


def _grouped(
    item: Item,
    targets: Sequence[Target],
    keys: Sequence[tuple[Scalar, str]],
    having: tuple[Scalar, exp.Expr] | None,
    aggregates: Aggregates,
    ids: ColumnIds,
) -> tuple[Operator, list[Target], frozenset[Column]]:
    """The block over its groups, its select list over them, and which columns are quotients."""
    if not keys and not aggregates:
        aggregates.count_rows()
    columns: dict[Scalar, Column] = {}
    for scalar, name in keys:
        if not columns_of(scalar).isdisjoint(aggregates.outputs):
            message = "aggregate functions are not allowed in GROUP BY"
            raise refuse("invalid-query", message, targets[0].node)
        if scalar not in columns:
            columns[scalar] = _column(scalar, name, ids)
    groups = Groups(columns, aggregates.outputs, item.scope)
    over = [replace(t, scalar=groups.over(t.scalar, t.node)) for t in targets]
    condition = None if having is None else groups.over(*having)
    computed = dict(groups.keys)
    for argument in aggregates.arguments:
        if argument not in computed:
            computed[argument] = _column(argument, "argument", ids)
    plan = item.plan
    if computed:
        plan = Project(plan, tuple((column, scalar) for scalar, column in computed.items()))
    plan = Aggregate(plan, tuple(groups.keys.values()), aggregates.calls(computed))
    if condition is not None:
        plan = Filter(plan, condition)
    below = item.scope.quotients
    divided = {column for scalar, column in groups.keys.items() if is_quotient(scalar, below)}
    return plan, over, aggregates.quotients(below) | divided


def _column(scalar: Scalar, name: str, ids: ColumnIds) -> Column:
    return scalar if isinstance(scalar, Column) else ids.computed(name, scalar.type)
