"""Text to syntax tree: one SELECT of PostgreSQL's SQL, read by sqlglot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import Dialect, exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from headrace.errors import HeadraceError, InternalError, UserError
from headrace.query.dialect import FromParser, with_plain_forms
from headrace.query.guards import check_operator_names, check_unicode_names, check_white_space
from headrace.query.type_names import NotBuiltIn, PostgresTokenizer

UNARY_PLUS = "+"
_WITH_KEYWORDS = frozenset(
    ("CAST", "EXTRACT", "JSON_OBJECT", "JSON_TABLE", "NORMALIZE", "OVERLAY", "POSITION")
) | {"SUBSTRING", "TRIM", "XMLELEMENT", "XMLTABLE"}
_INTERVAL_FIELDS = frozenset(("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"))
_STRINGS = frozenset((*PostgresParser.STRING_PARSERS, TokenType.BYTE_STRING))
_POSTGRES = Dialect.get_or_raise("postgres")
_POSTGRES.tokenizer_class = PostgresTokenizer
# Subscripts stay as they are written; sqlglot would count some of them from 0.
_POSTGRES.INDEX_OFFSET = 0


class _QueryParser(FromParser):
    """sqlglot's parser without its opinions on functions.

    sqlglot would rewrite many calls into nodes of its own meaning; here every call keeps the name
    that the user wrote, and `headrace.functions` decides its meaning; only calls with keywords
    between their arguments are left to sqlglot. A unary plus stays too, since PostgreSQL names `+x`
    otherwise than `x`, and unnest is a function like any other. The text of an interval is left
    to `headrace.query.literal_texts`.
    """

    FUNCTIONS: ClassVar[Any] = {}
    FUNCTION_PARSERS: ClassVar[Any] = {
        name: parser
        for name, parser in PostgresParser.FUNCTION_PARSERS.items()
        if name in _WITH_KEYWORDS
    }
    UNARY_PARSERS = {
        **PostgresParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: self._parse_unary_plus(),
    }

    # The right side stays what was written, not a path of sqlglot's own.
    COLUMN_OPERATORS = {
        **PostgresParser.COLUMN_OPERATORS,
        TokenType.ARROW: lambda self, this, key: self.expression(
            exp.JSONExtract(this=this, expression=key)
        ),
        TokenType.DARROW: lambda self, this, key: self.expression(
            exp.JSONExtractScalar(this=this, expression=key)
        ),
    }

    QUOTED_TYPES_TO_PRESERVE = NotBuiltIn()

    def _parse_unary_plus(self) -> exp.Expr:
        operand = self._parse_unary()
        if operand is None:
            self.raise_error("an operand is missing")
        return self.expression(exp.Anonymous(this=UNARY_PLUS, expressions=[operand]))

    def _parse_position(self, haystack_first: bool = False) -> exp.StrPosition:
        """Return position(b IN a), or a call by name, `"position"(a, b)`, which names a first."""
        name, before = self._tokens[self._index - 2], self._tokens[max(self._index - 3, 0)]
        by_name = name.token_type == TokenType.IDENTIFIER or before.token_type == TokenType.DOT
        return super()._parse_position(haystack_first or by_name)

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Interval | None:
        """Return INTERVAL '…', its text as it is written, with the fields that may follow."""
        index = self._index
        if not self._match(TokenType.INTERVAL) or not self._match_set(_STRINGS, advance=False):
            self._retreat(index)
            return None
        text = self._parse_primary()
        unit = self._parse_interval_field()
        if unit is not None and self._match_text_seq("TO"):
            unit = exp.IntervalSpan(this=unit, expression=self._parse_interval_field())
        return self.expression(exp.Interval(this=text, unit=unit))

    def _parse_interval_field(self) -> exp.Expr | None:
        token = self._curr
        if token is None or token.token_type == TokenType.IDENTIFIER:
            return None
        if token.text.upper() not in _INTERVAL_FIELDS:
            return None
        self._advance()
        field = exp.var(token.text.upper())
        if not self._match(TokenType.L_PAREN, advance=False):
            return field
        digits = self._parse_wrapped(self._parse_number)
        return exp.Anonymous(this=field.name, expressions=[digits])

    def _parse_unnest(self, with_alias: bool = True) -> None:
        return None

    def _parse_derived_table_values(self, allow_value_synonym: bool = False) -> exp.Values | None:
        """Return `(VALUES …)` alone; None for a longer query in parentheses, to parse as such."""
        whole = super()._parse_derived_table_values
        parsed = self._try_parse(lambda: whole(allow_value_synonym))
        return parsed if isinstance(parsed, exp.Values) else None


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text that can be parsed."""
    return _POSTGRES.tokenize(text)


def parse(text: str) -> exp.Query:
    """Return the query's syntax tree; UserError if the text is not exactly one query."""
    try:
        tokens = _POSTGRES.tokenize(text)
        check_white_space(text, tokens)
        check_operator_names(text, tokens)
        check_unicode_names(tokens)
        _refuse_junk_after_numbers(tokens)
        _refuse_casts_of_typed_constants(tokens)
        statements = [
            s for s in _QueryParser(dialect=_POSTGRES).parse(tokens, text) if s is not None
        ]
    except TokenError:
        raise UserError(
            "syntax-error",
            "the query text ends inside a string, a quoted name or a comment",
        ) from None
    except ParseError as error:
        raise _syntax_error(error) from None
    except RecursionError:
        raise too_deep() from None
    if not statements:
        raise UserError("syntax-error", "the query text is empty")
    if len(statements) > 1:
        raise UserError(
            "unsupported-query", f"one query is expected, not {len(statements)} statements"
        )
    (statement,) = statements
    statement = with_plain_forms(statement.transform(_selected, copy=False))
    if isinstance(statement, exp.Values):
        statement = _star_of(statement)
    if not isinstance(statement, exp.Query):
        raise UserError(
            "unsupported-query",
            f"{tokens[0].text.upper()} is not a query",
            hint="A stream table is defined by a SELECT.",
        )
    return statement


def _selected(node: exp.Expr) -> exp.Expr:
    """Return `VALUES … ORDER BY … LIMIT …` as a SELECT from VALUES, other nodes as they are."""
    present_clauses = [
        name for name in ("order", "limit", "offset") if node.args.get(name) is not None
    ]
    return (
        _star_of(node, *present_clauses)
        if isinstance(node, exp.Values) and present_clauses
        else node
    )


def _star_of(values: exp.Values, *moved: str) -> exp.Select:
    select = exp.Select(expressions=[exp.Star()])
    for name in moved:
        select.set(name, values.args.pop(name))
    select.set("from_", exp.From(this=values.copy()))
    return select


def too_deep() -> UserError:
    return UserError(
        "unsupported-query",
        "an expression is nested too deeply",
        hint="Write long alternatives as IN (…).",
    )


def _syntax_error(error: ParseError) -> UserError:
    first = error.errors[0] if error.errors else {}
    highlight, line = str(first.get("highlight") or ""), first.get("line")
    if not line:
        return UserError("syntax-error", "the query cannot be parsed")
    column = int(first["col"]) - max(len(highlight) - 1, 0)
    return UserError(
        "syntax-error",
        f'syntax error at or near "{highlight}"',
        detail=f"At line {line}, column {column}.",
    )


def _refuse_junk_after_numbers(tokens: list[Token]) -> None:
    """Refuse `1_000` and `12abc`: sqlglot reads a number with an alias, which no server means.

    Underscores between digits are a number of 1000 since PostgreSQL 16 and an error before.
    """
    for number, following in pairwise(tokens):
        if number.token_type != TokenType.NUMBER or following.start != number.end + 1:
            continue
        if re.fullmatch("(_[0-9]+)+", following.text):
            raise UserError(
                "unsupported-query",
                f"underscores between digits are not maintained: {number.text}{following.text}",
                detail=f"At line {number.line}, column {number.col - len(number.text) + 1}.",
                hint="Write the number with digits only.",
            )
        if following.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER):
            raise UserError(
                "syntax-error",
                f'trailing junk after numeric literal: "{number.text}{following.text}"',
                detail=f"At line {number.line}, column {number.col - len(number.text) + 1}.",
                hint="Write the number with digits only.",
            )


def _refuse_casts_of_typed_constants(tokens: list[Token]) -> None:
    """Refuse `DATE '2024-12-31'::text`: sqlglot reads a date of text, which it does not mean."""
    for type_, constant, operator in zip(tokens, tokens[1:], tokens[2:], strict=False):
        typed = type_.token_type in (*_QueryParser.TYPE_TOKENS, TokenType.INTERVAL)
        if typed and [constant.token_type, operator.token_type] == [
            TokenType.STRING,
            TokenType.DCOLON,
        ]:
            raise UserError(
                "unsupported-query",
                f"a cast directly after {type_.text} '{constant.text}'",
                detail=f"At line {operator.line}, column {operator.col - 1}.",
                hint="Put parentheses around the constant and its type.",
            )


@contextmanager
def reporting_internal_errors() -> Iterator[None]:
    """Raise a HeadraceError for every exception: nothing is known of a query that is not read."""
    try:
        yield
    except HeadraceError:
        raise
    except RecursionError:
        raise too_deep() from None
    except Exception as error:
        raise InternalError(
            "internal-error",
            f"the query could not be read: {type(error).__name__}",
            detail=str(error) or None,
            hint="This is a mistake in Headrace. Write the query in another form.",
        ) from error
