"""One SELECT block as a plan.

Aggregate (DISTINCT) over Project (select list) over Filter (HAVING) over Aggregate
over Project (keys and arguments) over Filter (WHERE) over Joins of Scans and inner queries
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.algebra.scalar import Scalar
from headrace.plan.operators import Filter, Project
from headrace.query.block import Block, distinct, group_identity, row_identity
from headrace.query.coerce import settled
from headrace.query.context import Context
from headrace.query.expressions import Expressions
from headrace.query.from_clause import BindQuery, FromClause
from headrace.query.group_by import Grouped, Having, group_keys
from headrace.query.grouping import Aggregates, is_quotient
from headrace.query.identifiers import name_of
from headrace.query.limits import Ordering, Outputs, ordering_of
from headrace.query.literals import Untyped
from headrace.query.output_names import output_name
from headrace.query.refusal import incomparable, refuse, require_exact
from headrace.query.scope import Scope
from headrace.query.subqueries import Inner
from headrace.query.table_functions import rows_in_select
from headrace.query.windows import Windows
from headrace.query.with_clause import require_no_working_table


@dataclass(frozen=True)
class Target:
    """An entry of the select list after stars are expanded; `untyped` if it is a bare constant."""

    name: str
    scalar: Scalar
    node: exp.Expr
    untyped: Untyped | None = None


def bind_select(select: exp.Select, context: Context, inner: BindQuery) -> Block:
    """Return the block's plan; ids are taken in the order of FROM, then of the text.

    `inner` binds the queries in FROM.
    """
    ids = context.ids
    item = FromClause(context, inner, Inner(context, inner)).bind(select)
    where = select.args.get("where")
    if where is not None:
        condition = Expressions(item.scope, "WHERE").condition(where.this)
        item = replace(item, plan=Filter(item.plan, condition))
    select, item = rows_in_select(select, item, context, inner)
    aggregates, windows = Aggregates(ids), Windows(select, ids)
    targets = _targets(select, item.scope, aggregates, windows)
    names = tuple(target.name for target in targets)
    ordering, hidden = _ordering(select, item.scope, targets, aggregates, windows)
    sets = group_keys(select, item.scope, [(t.name, t.scalar) for t in targets])
    targets = [*targets, *hidden]
    having = _having(select, item.scope, aggregates)
    if aggregates:
        require_no_working_table(select, context)
    plan = item.plan
    quotients = item.scope.all_quotients
    parts = [Target("", scalar, node) for scalar, node in windows.scalars.items()]
    identity = row_identity(item.plan.columns)
    if aggregates or sets or having is not None:
        groups = Grouped(sets or ((),), aggregates, windows.outputs, item.scope, ids)
        targets = [replace(t, scalar=groups.over(t.scalar, t.node)) for t in targets]
        parts = [replace(t, scalar=groups.over(t.scalar, t.node)) for t in parts]
        plan = groups.plan(plan, having)
        quotients = groups.quotients
        identity = group_identity(plan)
    if windows:
        plan = windows.plan(plan, [part.scalar for part in parts], identity)
        quotients |= windows.quotients([part.scalar for part in parts], quotients)
    outputs = tuple((ids.computed(t.name, t.scalar.type), t.scalar) for t in targets)
    block = Block(
        Project(plan, outputs),
        names,
        frozenset(column for column, scalar in outputs if is_quotient(scalar, quotients)),
        {i: t.untyped for i, t in enumerate(targets[: len(names)]) if t.untyped is not None},
    )
    if select.args.get("distinct") is not None and ordering.on is None:
        for target in targets:
            _require_comparable(target.scalar, "DISTINCT", target.node)
        block = replace(block, plan=distinct(block.plan), untyped={})
    return replace(block, plan=ordering.applied(block.plan, len(names), select, context.keys))


def _ordering(
    select: exp.Select,
    scope: Scope,
    targets: Sequence[Target],
    aggregates: Aggregates,
    windows: Windows,
) -> tuple[Ordering, list[Target]]:
    """Return the order and number of the block's rows, and what only the order reads."""
    bind = Expressions(scope, "ORDER BY", aggregates, windows).bind
    names, scalars = zip(*((target.name, target.scalar) for target in targets), strict=True)
    outputs = Outputs(names, scalars, lambda node: settled(bind(node)))
    ordering = ordering_of(select, outputs, bind)
    for place in ordering.on or ():
        _require_comparable(outputs.scalars[place], "DISTINCT ON", select)
    if outputs.hidden and select.args.get("distinct") is not None and ordering.on is None:
        message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
        raise refuse("invalid-query", message, outputs.hidden[0][1])
    return ordering, [Target("order", scalar, node) for scalar, node in outputs.hidden]


def _targets(
    select: exp.Select, scope: Scope, aggregates: Aggregates, windows: Windows
) -> list[Target]:
    expressions = Expressions(scope, "SELECT", aggregates, windows)
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
    """Return the columns that `*` or `t.*` stands for."""
    if isinstance(node, exp.Star):
        columns = scope.columns
    elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        columns = scope.source(node).columns
    else:
        return None
    return [Target(column.name, scope.usable(column, node), node) for column in columns]


def _require_comparable(scalar: Scalar, clause: str, node: exp.Expr) -> None:
    if scalar.type.comparison == "none":
        raise incomparable(clause, scalar.type, node)
    require_exact(scalar.type, clause, node)


def _having(select: exp.Select, scope: Scope, aggregates: Aggregates) -> Having | None:
    having = select.args.get("having")
    if having is None:
        return None
    return Having(Expressions(scope, "HAVING", aggregates).condition(having.this), having)
