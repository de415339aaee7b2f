"""FROM: scans, inner queries and joins, and the names they make visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.algebra.scalar import Outer, Scalar, map_outers_of_plan
from headrace.plan.operators import Scan
from headrace.query.block import Block
from headrace.query.context import Context, Defined, WorkingTable
from headrace.query.expressions import Expressions
from headrace.query.identifiers import name_of, table_name
from headrace.query.joins import Item, join_items, join_kind, join_using, lateral_item, shared_names
from headrace.query.query_text import in_view, parse_view
from headrace.query.recursion import bind_recursive
from headrace.query.refusal import refuse
from headrace.query.schema import BoundTable, BoundView, Qualified
from headrace.query.scope import UNNAMED_VALUES, FromTable, Scope, Visible
from headrace.query.subqueries import Inner, unwrapped
from headrace.query.table_functions import bind_table_function, function_of
from headrace.query.values import ONE_ROW, nothing_in

BindQuery = Callable[[exp.Expr, Context], Block]


@dataclass(frozen=True)
class Left:
    """Items to the left of another, which that may read if it is LATERAL or a function.

    PostgreSQL finds a name also in those that it is combined with by RIGHT or FULL JOIN, but then
    refuses it: they are not `readable`.
    """

    scopes: tuple[tuple[Scope, bool], ...] = ()

    def with_(self, scope: Scope, *, readable: bool = True) -> Left:
        return Left((*self.scopes, (scope, readable)))

    @property
    def scope(self) -> Scope:
        parts = [scope if readable else scope.unreadable() for scope, readable in self.scopes]
        return Scope.together(parts)


@dataclass(frozen=True)
class FromClause:
    """Binds FROM and its joins where a query stands; `inner` binds the queries in it."""

    context: Context
    inner: BindQuery
    queries: Inner

    def bind(self, select: exp.Select) -> Item:
        """Return all of FROM as one item.

        Commas separate items, and an ON sees only the tables of its own item.
        """
        first = select.args.get("from_")
        if first is None:
            return Item(ONE_ROW, nothing_in(self.context, self.inner))
        whole: Item | None = None
        for node, joins in _listed(first, select.args.get("joins") or ()):
            left = Left() if whole is None else Left().with_(whole.scope)
            item = self._item(node.this, left)
            for join in joins:
                item = self._join(item, join, left)
            whole = item if whole is None else _cross(whole, item, node)
        assert whole is not None
        return whole

    def _item(self, node: exp.Expr, left: Left) -> Item:
        """Return a table or query, with the joins beside it inside its own parentheses."""
        match node:
            case exp.Table(this=exp.Identifier()):
                item = self._table(node)
            case exp.Subquery(this=exp.Query() as query) if not isinstance(query, exp.Subquery):
                item = self._query(node, query)
            case exp.Subquery(this=inside):
                item = self._parentheses(node, inside, left)
            case exp.Values():
                item = self._query(node, node)
            case exp.Table(this=exp.Values() as values):
                item = self._query(node, values)
            case exp.Lateral(this=exp.Subquery() as query):
                block = self.inner(unwrapped(query), self.context.inside(left.scope))
                scope = Scope.of(_aliased(_source("", block), node), block.quotients)
                item = lateral_item(block.plan, scope)
            case _ if function_of(node) is not None:
                inside = self.context.inside(left.scope)
                block = bind_table_function(node, inside, self.inner)
                item = lateral_item(block.plan, Scope.of(_function_source(block, node)))
            case _:
                message = "only tables and queries are maintained in FROM"
                raise refuse("unsupported-query", message, node)
        scope = replace(item.scope, enclosing=self.context.enclosing, inner=self.queries)
        item = replace(item, scope=scope)
        for join in node.args.get("joins") or ():
            if _is_comma(join):
                raise refuse("syntax-error", 'syntax error at or near ","', join)
            item = self._join(item, join, left)
        return item

    def _table(self, node: exp.Table) -> Item:
        if node.args.get("ordinality"):
            raise refuse("unsupported-query", "WITH ORDINALITY numbers a function's rows", node)
        schema, name = table_name(node)
        defined = self.context.defined.get(name) if schema is None else None
        match defined:
            case Defined():
                return self._defined(defined, name, node)
            case WorkingTable():
                return self._working_table(defined, name, node)
        table = self.context.schema.resolve(schema, name)
        match table:
            case BoundTable():
                return self._scan(table, node)
            case BoundView():
                return self._view(table, node)
        full_name = name if schema is None else f"{schema}.{name}"
        raise refuse("unknown-table", f'table "{full_name}" does not exist', node)

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
        source = FromTable(table.name, table.schema, visible, keys)
        return Item(Scan(table.relation, fields), Scope.of(_aliased(source, node)))

    def _defined(self, defined: Defined, name: str, node: exp.Table) -> Item:
        """Return a query of WITH: bound where it stands, named where it is used."""
        definition_context = replace(defined.context, level=self.context.level)
        if defined.variable is None:
            block = self.inner(defined.node.this, definition_context.deeper())
        else:
            block = bind_recursive(
                defined.node, defined.variable, definition_context.deeper(), self.inner
            )
        plan = block.plan
        for _ in range(self.context.depth - definition_context.depth):
            # The query reads its own surroundings, which are further out where it is used.
            plan = map_outers_of_plan(plan, Outer)
        block = replace(block, plan=plan)
        source = _renamed(_source(name, block), defined.node.args["alias"])
        return Item(block.plan, Scope.of(_aliased(source, node), block.quotients))

    def _working_table(self, table: WorkingTable, name: str, node: exp.Table) -> Item:
        """Return a recursive query's own name inside of it: the rows of the level before."""
        number = self.context.next_scan()
        fields = tuple(
            (f"c{i}", self.context.ids.scanned(number, column_name, f"c{i}", type_))
            for i, (column_name, type_) in enumerate(zip(table.names, table.types, strict=True), 1)
        )
        scan = Scan(table.variable, fields)
        quotients = frozenset(scan.columns[i] for i in table.quotients)
        source = _source(name, Block(scan, table.names))
        return Item(scan, Scope.of(_aliased(source, node), quotients))

    def _view(self, view: BoundView, node: exp.Table) -> Item:
        inside = replace(
            self.context, schema=Qualified(self.context.schema), defined={}, enclosing=None
        )
        with in_view(view):
            block = self.inner(parse_view(view), inside.deeper())
        source = _source(view.name, replace(block, names=view.columns), view.schema)
        return Item(block.plan, Scope.of(_aliased(source, node), block.quotients))

    def _query(self, node: exp.Expr, query: exp.Expr) -> Item:
        block = self.inner(query, self.context.deeper())
        name = UNNAMED_VALUES if isinstance(query, exp.Values) else ""
        return Item(block.plan, Scope.of(_aliased(_source(name, block), node), block.quotients))

    def _parentheses(self, node: exp.Subquery, inside: exp.Expr, left: Left) -> Item:
        """Return a join or a query in parentheses; an alias hides the names inside."""
        item = self._item(inside, left)
        if node.args.get("alias") is None:
            return item
        hidden = FromTable("", None, item.scope.columns)
        return replace(item, scope=Scope.of(_aliased(hidden, node), item.scope.quotients))

    def _join(self, item: Item, join: exp.Join, left: Left) -> Item:
        """Return the item joined with the next item, which sees it and all items to its left."""
        kind = join_kind(join)
        readable = kind in ("inner", "left")
        right = self._item(join.this, left.with_(item.scope, readable=readable))
        if join.args.get("method") == "NATURAL":
            names = shared_names(item.scope, right.scope)
            return join_using(kind, item, right, names, join, self.context.ids)
        using = join.args.get("using")
        if using:
            names = [name_of(name) for name in using]
            return join_using(kind, item, right, names, join, self.context.ids)
        scope = item.scope.beside(right.scope, join)
        on = join.args.get("on")
        condition = None if on is None else Expressions(scope, "JOIN/ON").condition(on)
        return join_items(kind, item, right, condition, scope)


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(name) for name in ("side", "kind", "method", "on", "using"))


def _listed(
    first: exp.From, joins: Sequence[exp.Join]
) -> list[tuple[exp.From | exp.Join, list[exp.Join]]]:
    """Return the items between FROM's commas, each with the joins that follow it."""
    items: list[tuple[exp.From | exp.Join, list[exp.Join]]] = [(first, [])]
    for join in joins:
        if _is_comma(join):
            items.append((join, []))
        else:
            items[-1][1].append(join)
    return items


def _cross(left: Item, right: Item, node: exp.Expr) -> Item:
    return join_items("inner", left, right, None, left.scope.beside(right.scope, node))


def _source(name: str, block: Block, schema: str | None = None) -> FromTable:
    """Return a query's columns under a name, without keys: PostgreSQL knows none of a query."""
    columns = zip(block.names, block.plan.columns, strict=True)
    visible = tuple(
        Visible(column_name, column, column.type.sql) for column_name, column in columns
    )
    return FromTable(name, schema, visible)


def _function_source(block: Block, node: exp.Expr) -> FromTable:
    """Return a function's columns under its own name, or under its alias."""
    call = function_of(node)
    assert call is not None
    source = _aliased(_source(name_of(call.this), block), node)
    return replace(source, value=len(block.names) == 1)


def _aliased(source: FromTable, node: exp.Expr) -> FromTable:
    """Return the source under the alias that the node gives it, if any."""
    alias = node.args.get("alias")
    if alias is None:
        return source
    return replace(_renamed(source, alias), alias=name_of(alias.this), schema=None)


def _renamed(source: FromTable, alias: exp.Expr) -> FromTable:
    """Return the source with its first columns renamed, as `AS t (a, b)` does."""
    names = [name_of(identifier) for identifier in alias.args.get("columns") or ()]
    if len(names) > len(source.columns):
        name = source.alias or name_of(alias.this)
        message = f'table "{name}" has {len(source.columns)} columns, not {len(names)}'
        raise refuse("invalid-query", message, alias)
    first = tuple(replace(c, name=n) for c, n in zip(source.columns, names, strict=False))
    return replace(source, columns=first + source.columns[len(names) :])
