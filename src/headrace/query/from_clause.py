"""FROM: scans and joins, and the names they make visible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.functions import call, chain
from headrace.plan.operators import Join, Operator, Scan
from headrace.plan.scalar import Scalar
from headrace.query.coerce import compared
from headrace.query.expressions import Expressions
from headrace.query.identifiers import name_of, table_name
from headrace.query.ids import ColumnIds
from headrace.query.refusal import located, refuse
from headrace.query.schema import BoundTable, Schema
from headrace.query.scope import Scope, Source, Visible, find


@dataclass(frozen=True)
class Item:
    """A part of FROM: its rows and what they are called."""

    plan: Operator
    scope: Scope


@dataclass(frozen=True)
class FromClause:
    """Binds FROM and its joins against a schema."""

    schema: Schema
    ids: ColumnIds

    def bind(self, select: exp.Select) -> Item:
        """Commas separate items, and an ON sees only the tables of its own item."""
        first = select.args.get("from_")
        if first is None:
            raise refuse("unsupported-query", "SELECT without FROM is not maintained", select)
        items: list[tuple[Item, exp.Expr]] = [(self._item(first.this), first)]
        for join in select.args.get("joins") or ():
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
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise refuse("unsupported-query", "only tables are maintained in FROM", node)
        schema, name = table_name(node)
        table = self.schema.resolve(schema, name)
        if table is None:
            shown = name if schema is None else f"{schema}.{name}"
            raise refuse("unknown-table", f'table "{shown}" does not exist', node)
        return self._scan(table, node)

    def _scan(self, table: BoundTable, node: exp.Table) -> Item:
        number = self.ids.next_scan()
        columns = {
            column.name: self.ids.scanned(number, column.name, column.physical, column.type)
            for column in table.columns
            if column.type is not None
        }
        fields = tuple(
            (column.physical, columns[column.name])
            for column in table.columns
            if column.name in columns
        )
        alias = node.args.get("alias")
        names = _column_names(table, alias)
        visible = tuple(
            Visible(name, columns.get(column.name), column.declared)
            for name, column in zip(names, table.columns, strict=True)
        )
        keys = tuple(
            frozenset[Scalar](columns[name] for name in key)
            for key in table.keys
            if all(name in columns for name in key)
        )
        if alias is None:
            source = Source(table.name, table.schema, visible, keys)
        else:
            source = Source(name_of(alias.this), None, visible, keys)
        return Item(Scan(table.relation, fields), Scope.of(source))

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


def _column_names(table: BoundTable, alias: exp.Expr | None) -> Iterator[str]:
    """The columns' names; `AS t (a, b)` renames the first of them."""
    renamed = [] if alias is None else alias.args.get("columns") or []
    if len(renamed) > len(table.columns):
        assert alias is not None
        message = f'table "{table.name}" has {len(table.columns)} columns, not {len(renamed)}'
        raise refuse("invalid-query", message, alias)
    names = [column.name for column in table.columns]
    names[: len(renamed)] = [name_of(identifier) for identifier in renamed]
    return iter(names)


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
    return Item(plan, Scope(both.sources, (*merged, *rest)))


def _one(name: str, scope: Scope, join: exp.Join) -> Visible:
    found = find(name, scope.columns)
    if not found:
        raise refuse("unknown-column", f'column "{name}" of USING does not exist', join)
    if len(found) > 1:
        raise refuse("ambiguous-column", f'common column "{name}" is ambiguous', join)
    return found[0]
