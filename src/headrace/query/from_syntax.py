"""The joins of FROM, parsed by PostgreSQL's grammar.

    table_ref:  item
             |  table_ref CROSS JOIN item
             |  table_ref NATURAL [type] JOIN item
             |  table_ref [type] JOIN table_ref ON condition
             |  table_ref [type] JOIN table_ref USING (columns) [AS alias]

A join stands in the `joins` of the item that it begins with, as in sqlglot's own trees. A right
side that is itself a join, as in `a JOIN b JOIN c ON … ON …`, begins with `b`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import TokenType

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
        """The next item after a comma, or the next join; None if neither follows."""
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
        shown = {name: token.text.upper() for name, token in words.items() if token is not None}
        right = self._parse_table()
        join = self.expression(exp.Join(this=right, **shown))
        if method is None and (kind is None or kind.token_type != TokenType.CROSS):
            self._parse_qualification(join, right)
        return join

    def _parse_qualification(self, join: exp.Join, right: exp.Expr | None) -> None:
        """ON or USING of a join, after the joins that belong to its right side."""
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
