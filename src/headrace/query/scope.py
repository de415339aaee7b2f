"""Which columns a name can mean, by PostgreSQL's rules for FROM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headrace.algebra.scalar import Column, Outer, Scalar
from headrace.errors import UserError
from headrace.query.identifiers import name_of
from headrace.query.refusal import did_you_mean, refuse

if TYPE_CHECKING:
    from headrace.query.subqueries import Inner

_SYSTEM_COLUMNS = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})

UNNAMED_VALUES = "*VALUES*"
"""What PostgreSQL calls VALUES without an alias, where it prints a view."""


@dataclass(frozen=True)
class Visible:
    """A column under its name. `scalar` is None if its type, `declared`, is stored nowhere.

    A column that is not `readable` is found by its name, and then refused.
    """

    name: str
    scalar: Scalar | None
    declared: str
    readable: bool = True


@dataclass(frozen=True)
class FromTable:
    """A table in FROM under its alias, "" if it has none. `schema` is kept where no alias hides it.

    `keys` are columns that are unique together and never NULL. A function's rows are a `value`
    where they have one column: the alias then means that.
    """

    alias: str
    schema: str | None
    columns: tuple[Visible, ...]
    keys: tuple[frozenset[Scalar], ...] = ()
    value: bool = False


@dataclass(frozen=True)
class Scope:
    """The names that are visible in a query block.

    `sources` answer qualified names, `columns` unqualified ones and `*`: after a join with USING
    the shared columns come first, and once. `quotients` are columns of inner queries that come from
    a numeric division. `enclosing` is the scope around, for names that are not found here;
    `inner` binds the queries inside expressions.
    """

    sources: tuple[FromTable, ...]
    columns: tuple[Visible, ...]
    quotients: frozenset[Column] = frozenset()
    enclosing: Scope | None = None
    inner: Inner | None = None

    @staticmethod
    def of(source: FromTable, quotients: frozenset[Column] = frozenset()) -> Scope:
        return Scope((source,), source.columns, quotients)

    @property
    def all_quotients(self) -> frozenset[Column]:
        """With those of queries inside expressions, as far as they are bound."""
        return self.quotients | (frozenset() if self.inner is None else self.inner.quotients)

    @staticmethod
    def together(scopes: Sequence[Scope]) -> Scope:
        """Return the scope of an item that reads others to its left, which may share names."""
        return Scope(
            tuple(source for scope in scopes for source in scope.sources),
            tuple(column for scope in scopes for column in scope.columns),
            frozenset[Column]().union(*(scope.quotients for scope in scopes)),
        )

    def unreadable(self) -> Scope:
        """Return the same names, each refused where it is used."""
        return replace(
            self,
            sources=tuple(replace(s, columns=_unreadable(s.columns)) for s in self.sources),
            columns=_unreadable(self.columns),
        )

    def beside(self, other: Scope, node: exp.Expr) -> Scope:
        """Return both scopes at once, as a comma or a join without USING gives them."""
        taken: dict[str, set[str | None]] = {}
        for source in self.sources:
            taken.setdefault(source.alias, set()).add(source.schema)
        for source in other.sources:
            schemas = taken.get(source.alias, set())
            if source.alias in ("", UNNAMED_VALUES) or not schemas:
                continue
            if source.schema is None or None in schemas or source.schema in schemas:
                message = f'table name "{source.alias}" specified more than once'
                raise refuse("invalid-query", message, node, "Give one of them an alias.")
        return replace(Scope.together((self, other)), enclosing=self.enclosing, inner=self.inner)

    @property
    def depth(self) -> int:
        """The number of scopes, this one and those around."""
        return 1 + (0 if self.enclosing is None else self.enclosing.depth)

    def column(self, node: exp.Column) -> Scalar:
        """Return the scalar that a column name means, here or in the nearest scope around."""
        if self.enclosing is not None and not self._knows(node):
            try:
                return Outer(self.enclosing.column(node))
            except UserError as error:
                if error.code not in ("unknown-column", "unknown-table"):
                    raise
        return self.usable(self._find(node), node)

    def _knows(self, node: exp.Column) -> bool:
        """Return whether the name is one of this scope, rightly used or not."""
        qualifier = node.args.get("table")
        if qualifier is None:
            return bool(find(name_of(node.this), self.columns))
        schema = node.args.get("db")
        return any(
            source.alias == name_of(qualifier)
            and (schema is None or source.schema == name_of(schema))
            for source in self.sources
        )

    def usable(self, visible: Visible, node: exp.Expr) -> Scalar:
        """Return the column, if it may be read here and its type is stored."""
        if not visible.readable:
            raise refuse(
                "invalid-query",
                f'invalid reference to FROM-clause entry for column "{visible.name}"',
                node,
                "The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
            )
        if visible.scalar is None:
            raise refuse(
                "unsupported-type",
                f'column "{visible.name}" has type {visible.declared},'
                " which has no exact counterpart on Spark",
                node,
                "Leave the column out, or store it in another type.",
            )
        return visible.scalar

    def _find(self, node: exp.Column) -> Visible:
        name = name_of(node.this)
        qualifier = node.args.get("table")
        source = None if qualifier is None else self.source(node)
        candidates = self.columns if source is None else source.columns
        full_name = name if source is None else f"{source.alias}.{name}"
        matching_columns = find(name, candidates)
        if not matching_columns and qualifier is None:
            matching_columns = [s.columns[0] for s in self.sources if s.value and s.alias == name]
        if not matching_columns:
            raise self._unknown(name, full_name, candidates, node)
        if len(matching_columns) > 1:
            raise refuse(
                "ambiguous-column",
                f'column reference "{full_name}" is ambiguous',
                node,
                "Write the table's name before the column's.",
            )
        return matching_columns[0]

    def _unknown(
        self, name: str, shown: str, candidates: Sequence[Visible], node: exp.Expr
    ) -> Exception:
        if name in _SYSTEM_COLUMNS:
            return refuse("unknown-column", f'system column "{shown}" is not captured', node)
        if any(source.alias == name for source in self.sources):
            message = f'"{name}" is a table; a whole row is not a value here'
            return refuse("unknown-column", message, node, "Name the columns one by one.")
        hint = did_you_mean(name, (column.name for column in candidates))
        return refuse("unknown-column", f'column "{shown}" does not exist', node, hint)

    def source(self, node: exp.Column) -> FromTable:
        """Return the table that a qualified name or `t.*` names."""
        alias = name_of(node.args["table"])
        schema = node.args.get("db")
        schema_name = None if schema is None else name_of(schema)
        matching_sources = [
            s for s in self.sources if s.alias == alias and schema_name in (None, s.schema)
        ]
        spelled_name = alias if schema_name is None else f"{schema_name}.{alias}"
        if len(matching_sources) > 1:
            message = f'table reference "{spelled_name}" is ambiguous'
            raise refuse("ambiguous-column", message, node, "Give one of them an alias.")
        if matching_sources:
            return matching_sources[0]
        hint = did_you_mean(alias, (source.alias for source in self.sources))
        raise refuse("unknown-table", f'no table "{spelled_name}" in FROM', node, hint)

    def label(self, column: Column) -> str:
        """Return the column's name as the user knows it, for messages."""
        for source in self.sources:
            for visible in source.columns:
                if visible.scalar == column:
                    return f"{source.alias}.{visible.name}" if source.alias else visible.name
        return column.id


def _unreadable(columns: Sequence[Visible]) -> tuple[Visible, ...]:
    return tuple(replace(column, readable=False) for column in columns)


def find(name: str, columns: Sequence[Visible]) -> list[Visible]:
    """Return every column of that name."""
    return [column for column in columns if column.name == name]
