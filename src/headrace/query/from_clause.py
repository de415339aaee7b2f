"""FROM: scans, inner queries and joins, and the names they make visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.functions import chain
from headrace.plan.lateral import Lateral
from headrace.plan.operators import Join, Operator, Scan
from headrace.plan.scalar import Outer, Scalar, Subquery, map_outers_of_plan
from headrace.query.block import Block
from headrace.query.context import Context, Defined, WorkingTable
from headrace.query.expressions import Expressions
from headrace.query.identifiers import name_of, table_name
from headrace.query.inner import Inner, unwrapped
from headrace.query.joins import Kind, equal_columns, join_kind, joined, merged_column
from headrace.query.recursion import bind_recursive
from headrace.query.refusal import located, refuse
from headrace.query.schema import BoundTable, BoundView, Qualified
from headrace.query.scope import UNNAMED_VALUES, Scope, Source, Visible, find
from headrace.query.table_functions import bind_table_function, function_of
from headrace.query.values import ONE_ROW, nothing_in
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
    queries: Inner

    def bind(self, select: exp.Select) -> Item:
        """Commas separate items, and an ON sees only the tables of its own item."""
        first = select.args.get("from_")
        if first is None:
            return Item(ONE_ROW, nothing_in(self.context, self.inner))
        return self._joined(self._item(first.this), first, select.args.get("joins") or ())

    def _joined(self, item: Item, node: exp.Expr, joins: Sequence[exp.Join]) -> Item:
        items: list[tuple[Item, exp.Expr]] = [(item, node)]
        for join in joins:
            if _is_lateral(join.this):
                items = [(self._lateral(items, join), join)]
                continue
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
            case exp.Values():
                item = self._query(node, node)
            case exp.Table(this=exp.Values() as values):
                item = self._query(node, values)
            case _ if function_of(node) is not None:
                block = bind_table_function(node, self.context.deeper(), self.inner)
                item = Item(block.plan, Scope.of(_function_source(block, node)))
            case _:
                message = "only tables and queries are maintained in FROM"
                raise refuse("unsupported-query", message, node)
        scope = replace(item.scope, enclosing=self.context.enclosing, inner=self.queries)
        return self._joined(replace(item, scope=scope), node, node.args.get("joins") or ())

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
        if defined.variable is None:
            block = self.inner(defined.node.this, seen.deeper())
        else:
            block = bind_recursive(defined.node, defined.variable, seen.deeper(), self.inner)
        plan = block.plan
        for _ in range(self.context.depth - seen.depth):
            # It reads of its own surroundings, which are further out where it is used.
            plan = map_outers_of_plan(plan, Outer)
        block = replace(block, plan=plan)
        source = _renamed(_source(name, block), defined.node.args["alias"])
        return Item(block.plan, Scope.of(_aliased(source, node), block.quotients))

    def _working_table(self, table: WorkingTable, name: str, node: exp.Table) -> Item:
        """A recursive query's own name inside of it: the rows of the level before."""
        number = self.context.next_scan()
        fields = tuple(
            (f"c{i}", self.context.ids.scanned(number, shown, f"c{i}", type_))
            for i, (shown, type_) in enumerate(zip(table.names, table.types, strict=True), 1)
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

    def _parentheses(self, node: exp.Subquery, inside: exp.Expr) -> Item:
        """Parentheses around a join or a query; with an alias they hide the names inside."""
        item = self._item(inside)
        if node.args.get("alias") is None:
            return item
        hidden = Source("", None, item.scope.columns)
        return Item(item.plan, Scope.of(_aliased(hidden, node), item.scope.quotients))

    def _lateral(self, items: Sequence[tuple[Item, exp.Expr]], join: exp.Join) -> Item:
        """A query that sees every item before it."""
        (left, _), *rest = items
        for item, node in rest:
            left = _cross(left, item, node)
        side, lateral = join.args.get("side"), join.this
        function = function_of(lateral)
        if not (function or isinstance(lateral.this, exp.Subquery)) or side not in (None, "LEFT"):
            name = f"{side or ''} JOIN LATERAL".strip()
            raise refuse("unsupported-query", f"{name} is not maintained here", join)
        inside = self.context.inside(left.scope)
        if function is not None:
            block = bind_table_function(lateral, inside, self.inner)
            right = Scope.of(_function_source(block, lateral))
        else:
            block = self.inner(unwrapped(lateral.this), inside)
            right = Scope.of(_aliased(_source("", block), lateral), block.quotients)
        scope = left.scope.beside(right, join)
        rows = Subquery("rows", block.plan)
        on = join.args.get("on")
        condition = None if on is None else Expressions(scope, "JOIN/ON").condition(on)
        return Item(Lateral(left.plan, rows, condition, keep=side == "LEFT"), scope)

    def _join(self, left: Item, right: Item, join: exp.Join) -> Item:
        kind = join_kind(join)
        if join.args.get("method") == "NATURAL":
            shared = _shared_names(left.scope, right.scope)
            return _join_using(kind, left, right, shared, join)
        using = join.args.get("using")
        if using:
            names = [name_of(_bare(identifier)) for identifier in using]
            return _join_using(kind, left, right, names, join)
        scope = left.scope.beside(right.scope, join)
        on = join.args.get("on")
        condition = None if on is None else Expressions(scope, "JOIN/ON").condition(on)
        return Item(joined(kind, left.plan, right.plan, condition), scope)


def _is_lateral(node: exp.Expr) -> bool:
    """Whether the item may read those before it, as functions do without being told."""
    call = function_of(node)
    return isinstance(node, exp.Lateral) or (
        call is not None and call.find(exp.Column, exp.Query) is not None
    )


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


def _function_source(block: Block, node: exp.Expr) -> Source:
    """A function's columns under its own name, or under its alias."""
    call = function_of(node)
    assert call is not None
    source = _aliased(_source(name_of(call.this), block), node)
    return replace(source, value=len(block.names) == 1)


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


def _shared_names(left: Scope, right: Scope) -> list[str]:
    """The columns of a NATURAL JOIN, in the left side's order; without any, all rows match."""
    return [column.name for column in left.columns if find(column.name, right.columns)]


def _join_using(kind: Kind, left: Item, right: Item, names: list[str], join: exp.Join) -> Item:
    """USING: equal columns appear once and first; qualified names still tell them apart."""
    both = left.scope.beside(right.scope, join)
    terms: list[Scalar] = []
    merged: list[Visible] = []
    with located(join):
        for name in names:
            a, b = _one(name, left.scope, join), _one(name, right.scope, join)
            sides = left.scope.usable(a, join), right.scope.usable(b, join)
            terms.append(equal_columns(*sides))
            shown = merged_column(kind, *sides, join)
            merged.append(Visible(name, shown, shown.type.sql))
    shared = set(names)
    rest = tuple(
        column
        for scope in (left.scope, right.scope)
        for column in scope.columns
        if column.name not in shared
    )
    plan = joined(kind, left.plan, right.plan, chain("and", terms) if terms else None)
    return Item(plan, replace(both, columns=(*merged, *rest)))


def _one(name: str, scope: Scope, join: exp.Join) -> Visible:
    found = find(name, scope.columns)
    if not found:
        raise refuse("unknown-column", f'column "{name}" of USING does not exist', join)
    if len(found) > 1:
        raise refuse("ambiguous-column", f'common column "{name}" is ambiguous', join)
    return found[0]
