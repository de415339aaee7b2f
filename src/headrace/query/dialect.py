"""PostgreSQL's syntax where sqlglot's differs: the joins of FROM, and forms printed in views.

The joins of FROM, parsed by PostgreSQL's grammar:

    table_ref:  item
             |  table_ref CROSS JOIN item
             |  table_ref NATURAL [type] JOIN item
             |  table_ref [type] JOIN table_ref ON condition
             |  table_ref [type] JOIN table_ref USING (columns) [AS alias]

A join stands in the `joins` of the item that it begins with, as in sqlglot's own trees. A right
side that is itself a join, as in `a JOIN b JOIN c ON … ON …`, begins with `b`.

Forms that PostgreSQL prints in views, or that users write, are bound in a plain form:

| written | bound as |
|---|---|
| `(t).id`, `(t).*` of a table in FROM | `t.id`, `t.*` |
| `pg_catalog.abs(x)` | `abs(x)` |
| `ROWS FROM (f(x))` | `f(x)` |
| `ROWS FROM (unnest(x), unnest(y))` | `unnest(x, y)` |
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import TokenType

from headrace.query.identifiers import name_of

USING_ALIAS = "using_alias"
"""The argument of a join node that holds the alias of its USING columns."""
ADDED_ARGUMENTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Join: frozenset({USING_ALIAS}),
    exp.Lateral: frozenset({"joins"}),
    exp.Values: frozenset({"joins"}),
}
"""Arguments of nodes that sqlglot's own parser does not give them."""
_KINDS = frozenset((TokenType.CROSS, TokenType.INNER, TokenType.OUTER))
_QUALIFICATIONS = frozenset((TokenType.ON, TokenType.USING))


class FromParser(PostgresParser):
    """sqlglot's parser with PostgreSQL's nesting of joins."""

    # Joins may follow LATERAL inside parentheses too.
    MODIFIABLES: ClassVar[Any] = (*PostgresParser.MODIFIABLES, exp.Lateral)

    def _parse_join(
        self,
        skip_join_token: bool = False,
        parse_bracket: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
    ) -> exp.Join | None:
        """Return the next item after a comma, or the next join; None if neither follows."""
        index = self._index
        if not self._match(TokenType.COMMA):
            return self._parse_qualified_join()
        table = self._try_parse(self._parse_table)
        if table is None:
            self._retreat(index)
            return None
        return self.expression(exp.Join(this=table))

    def _parse_qualified_join(self) -> exp.Join | None:
        index = self._index
        method = self._prev if self._match(TokenType.NATURAL) else None
        side = self._prev if self._match_set(self.JOIN_SIDES) else None
        kind = self._prev if self._match_set(_KINDS) else None
        if not self._match(TokenType.JOIN):
            self._retreat(index)
            return None
        words = {"method": method, "side": side, "kind": kind}
        join_arguments = {
            name: token.text.upper() for name, token in words.items() if token is not None
        }
        right = self._parse_table()
        join = self.expression(exp.Join(this=right, **join_arguments))
        if method is None and (kind is None or kind.token_type != TokenType.CROSS):
            self._parse_qualification(join, right)
        return join

    def _parse_qualification(self, join: exp.Join, right: exp.Expr | None) -> None:
        """Parse ON or USING of a join, after the joins that belong to its right side."""
        while right is not None and not self._match_set(_QUALIFICATIONS, advance=False):
            nested = self._parse_qualified_join()
            if nested is None:
                self.raise_error("Expected ON or USING")
                return
            right.append("joins", nested)
        if self._match(TokenType.ON):
            join.set("on", self._parse_disjunction())
        elif self._match(TokenType.USING):
            join.set("using", self._parse_wrapped_csv(self._parse_id_var))
            if self._match(TokenType.ALIAS):
                join.set(USING_ALIAS, self._parse_id_var())


def with_plain_forms(statement: exp.Expr) -> exp.Expr:
    """Return the statement, itself changed; forms that are not listed stay as they are."""
    for table in list(statement.find_all(exp.Table)):
        call = _only_function(table)
        if call is not None:
            table.set("rows_from", None)
            table.set("this", call)
    for named in list(statement.find_all(exp.Dot, exp.Column)):
        plain = _plain_name(named if isinstance(named, exp.Dot) else _as_dot(named))
        if plain is not None:
            named.replace(plain)
    return statement


def _as_dot(column: exp.Expr) -> exp.Dot | None:
    """Return a call with FILTER, which sqlglot takes for a column of its schema, as a dot."""
    schema, call = column.args.get("table"), column.this
    if schema is None or isinstance(call, (exp.Identifier, exp.Star)):
        return None
    return exp.Dot(this=schema, expression=call)


def _plain_name(dot: exp.Dot | None) -> exp.Expr | None:
    """Return the plain form of a name; a name of another schema stays a name with a dot."""
    if dot is None:
        return None
    match dot.this, dot.args.get("expression"):
        case exp.Paren(this=exp.Column(this=exp.Identifier() as table) as row), (
            exp.Identifier() | exp.Star()
        ) as field if row.args.get("table") is None:
            return exp.Column(this=field, table=table)
        case exp.Identifier() as schema, exp.Expr() as call if name_of(schema) == "pg_catalog":
            return call
    return dot


def _only_function(table: exp.Table) -> exp.Anonymous | None:
    """Return the one function that ROWS FROM stands for, if there is one."""
    inside = table.args.get("rows_from") or ()
    calls = [item.this for item in inside if isinstance(item, exp.Table) and _is_bare(item)]
    if not calls or len(calls) < len(inside):
        return None
    first: exp.Anonymous = calls[0]
    others = calls[1:]
    if others and any(name_of(c.this) != "unnest" or len(c.expressions) != 1 for c in calls):
        return None
    for call in others:
        first.append("expressions", call.expressions[0])
    return first


def _is_bare(table: exp.Table) -> bool:
    """Return whether the item is a call without a schema, an alias or definitions of columns."""
    present_arguments = {name for name, value in table.args.items() if value}
    return isinstance(table.this, exp.Anonymous) and present_arguments == {"this"}
