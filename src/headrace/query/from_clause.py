"""FROM: scans, inner queries and joins, and the names they make visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.functions import call, chain
from headrace.plan.operators import Join, Operator, Scan
from headrace.plan.scalar import Scalar
from headrace.query.block import Block
from headrace.query.coerce import compared
from headrace.query.context import Context, Defined
from headrace.query.expressions import Expressions
from headrace.query.identifiers import name_of, table_name
from headrace.query.refusal import located, refuse
from headrace.query.schema import BoundTable, BoundView, Qualified
from headrace.query.scope import Scope, Source, Visible, find
from headrace.query.view_text import in_view, parse_view

BindQuery = Callable[[exp.Expr, Context], Block]


@dataclass(frozen=True)
class Item:
    """A part of FROM: its rows and what they are called."""

    plan: Operator
    scope: Scope


@dataclass(frozen=True)
class FromClause:
    """Binds FROM and its joins where a query stands; `inner` binds the queries in it."""

    context: Context
    inner: BindQuery

    def bind(self, select: exp.Select) -> Item:
        """Commas separate items, and an ON sees only the tables of its own item."""
        first = select.args.get("from_")
        if first is None:
            raise refuse("unsupported-query", "SELECT without FROM is not maintained", select)
        return self._joined(self._item(first.this), first, select.args.get("joins") or ())

    def _joined(self, item: Item, node: exp.Expr, joins: Sequence[exp.Join]) -> Item:
        items: list[tuple[Item, exp.Expr]] = [(item, node)]
        for join in joins:
            right = self._item(join.this)
            if _is_comma(join):
                items.append((right, join))
            else:
                left, _ = items[-1]
                items[-1] = (self._join(left, right, join), join)
        (whole, _), *rest = items
        for item, node in rest:
            whole = _cross(whole, item, node)
        return whole

    def _item(self, node: exp.Expr) -> Item:
        """A table or query, with the joins that stand beside it inside its own parentheses."""
        match node:
            case exp.Table(this=exp.Identifier()):
                item = self._table(node)
            case exp.Subquery(this=exp.Query() as query) if not isinstance(query, exp.Subquery):
                item = self._query(node, query)
            case exp.Subquery(this=inside):
                item = self._parentheses(node, inside)
            case _:
                message = "only tables and queries are maintained in FROM"
                raise refuse("unsupported-query", message, node)
        return self._joined(item, node, node.args.get("joins") or ())

    def _table(self, node: exp.Table) -> Item:
        schema, name = table_name(node)
        defined = self.context.defined.get(name) if schema is None else None
        if defined is not None:
            return self._defined(defined, name, node)
        table = self.context.schema.resolve(schema, name)
        match table:
            case BoundTable():
                return self._scan(table, node)
            case BoundView():
                return self._view(table, node)
        shown = name if schema is None else f"{schema}.{name}"
        raise refuse("unknown-table", f'table "{shown}" does not exist', node)

    def _scan(self, table: BoundTable, node: exp.Table) -> Item:
        number = self.context.next_scan()
        columns = {
            column.name: self.context.ids.scanned(number, column.name, column.physical, column.type)
            for column in table.columns
            if column.type is not None
        }
        fields = tuple(
            (column.physical, columns[column.name])
            for column in table.columns
            if column.name in columns
        )
        visible = tuple(
            Visible(column.name, columns.get(column.name), column.declared)
            for column in table.columns
        )
        keys = tuple(
            frozenset[Scalar](columns[name] for name in key)
            for key in table.keys
            if all(name in columns for name in key)
        )
        source = Source(table.name, table.schema, visible, keys)
        return Item(Scan(table.relation, fields), Scope.of(_aliased(source, node)))

    def _defined(self, defined: Defined, name: str, node: exp.Table) -> Item:
        """A query of WITH: bound where it stands, named where it is used."""
        seen = replace(defined.context, level=self.context.level)
        block = self.inner(defined.node.this, seen.deeper())
        source = _renamed(_source(name, block), defined.node.args["alias"])
        return Item(block.plan, Scope.of(_aliased(source, node), block.quotients))

    def _view(self, view: BoundView, node: exp.Table) -> Item:
        inside = replace(self.context, schema=Qualified(self.context.schema), defined={})
        with in_view(view):
            block = self.inner(parse_view(view), inside.deeper())
        source = _source(view.name, replace(block, names=view.columns), view.schema)
        return Item(block.plan, Scope.of(_aliased(source, node), block.quotients))

    def _query(self, node: exp.Subquery, query: exp.Query) -> Item:
        block = self.inner(query, self.context.deeper())
        return Item(block.plan, Scope.of(_aliased(_source("", block), node), block.quotients))

    def _parentheses(self, node: exp.Subquery, inside: exp.Expr) -> Item:
        """Parentheses around a join or a query; with an alias they hide the names inside."""
        item = self._item(inside)
        if node.args.get("alias") is None:
            return item
        hidden = Source("", None, item.scope.columns)
        return Item(item.plan, Scope.of(_aliased(hidden, node), item.scope.quotients))

    def _join(self, left: Item, right: Item, join: exp.Join) -> Item:
        side, kind = join.args.get("side"), join.args.get("kind")
        method = join.args.get("method")
        inner = side is None and kind in (None, "INNER", "CROSS")
        if not inner or method not in (None, "NATURAL"):
            name = " ".join(part for part in (method, side, kind, "JOIN") if part)
            raise refuse("unsupported-query", f"{name} is not maintained", join)
        if method == "NATURAL":
            shared = _shared_names(left.scope, right.scope, join)
            return _join_using(left, right, shared, join)
        using = join.args.get("using")
        if using:
            names = [name_of(_bare(identifier)) for identifier in using]
            return _join_using(left, right, names, join)
        crossed = _cross(left, right, join)
        on = join.args.get("on")
        if on is None:
            return crossed
        condition = Expressions(crossed.scope, "JOIN/ON").condition(on)
        return replace(crossed, plan=Join(left.plan, right.plan, condition))


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(name) for name in ("side", "kind", "method", "on", "using"))


def _bare(identifier: exp.Expr) -> exp.Expr:
    return identifier.this if isinstance(identifier, exp.Column) else identifier


def _cross(left: Item, right: Item, node: exp.Expr) -> Item:
    return Item(Join(left.plan, right.plan), left.scope.beside(right.scope, node))


def _source(name: str, block: Block, schema: str | None = None) -> Source:
    """A query's columns under a name. It has no keys that PostgreSQL would know of."""
    columns = zip(block.names, block.plan.columns, strict=True)
    visible = tuple(Visible(shown, column, column.type.sql) for shown, column in columns)
    return Source(name, schema, visible)


def _aliased(source: Source, node: exp.Expr) -> Source:
    """The source under the alias that the node gives it, if any."""
    alias = node.args.get("alias")
    if alias is None:
        return source
    return replace(_renamed(source, alias), alias=name_of(alias.this), schema=None)


def _renamed(source: Source, alias: exp.Expr) -> Source:
    """`AS t (a, b)` renames the first columns."""
    names = [name_of(identifier) for identifier in alias.args.get("columns") or ()]
    if len(names) > len(source.columns):
        name = source.alias or name_of(alias.this)
        message = f'table "{name}" has {len(source.columns)} columns, not {len(names)}'
        raise refuse("invalid-query", message, alias)
    first = tuple(replace(c, name=n) for c, n in zip(source.columns, names, strict=False))
    return replace(source, columns=first + source.columns[len(names) :])


def _shared_names(left: Scope, right: Scope, join: exp.Join) -> list[str]:
    """The columns of a NATURAL JOIN, in the left side's order."""
    names = [column.name for column in left.columns if find(column.name, right.columns)]
    if not names:
        message = "NATURAL JOIN of tables without a column in common"
        raise refuse("unsupported-query", message, join, "Write CROSS JOIN.")
    return names


def _join_using(left: Item, right: Item, names: list[str], join: exp.Join) -> Item:
    """USING: equal columns appear once and first; an inner join shows the left one's value."""
    both = left.scope.beside(right.scope, join)
    pairs = [(_one(name, left.scope, join), _one(name, right.scope, join)) for name in names]
    terms: list[Scalar] = []
    merged: list[Visible] = []
    with located(join):
        for a, b in pairs:
            first, second = left.scope.usable(a, join), right.scope.usable(b, join)
            if first.type.kind != second.type.kind:
                message = f'USING column "{a.name}" has two types'
                raise refuse(
                    "unsupported-query", message, join, "Write ON, and name the column you want."
                )
            terms.append(call("=", *compared(first, second)))
            merged.append(a)
    shared = set(names)
    rest = tuple(
        column
        for scope in (left.scope, right.scope)
        for column in scope.columns
        if column.name not in shared
    )
    plan = Join(left.plan, right.plan, chain("and", terms))
    return Item(plan, replace(both, columns=(*merged, *rest)))


def _one(name: str, scope: Scope, join: exp.Join) -> Visible:
    found = find(name, scope.columns)
    if not found:
        raise refuse("unknown-column", f'column "{name}" of USING does not exist', join)
    if len(found) > 1:
        raise refuse("ambiguous-column", f'common column "{name}" is ambiguous', join)
    return found[0]
