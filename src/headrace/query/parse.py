"""Text to syntax tree: one SELECT of PostgreSQL's SQL, read by sqlglot."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import Dialect, exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from headrace.errors import UserError

UNARY_PLUS = "+"
_WITH_KEYWORDS = frozenset(
    ("CAST", "EXTRACT", "JSON_OBJECT", "JSON_TABLE", "NORMALIZE", "OVERLAY", "POSITION")
) | {"SUBSTRING", "TRIM", "XMLELEMENT", "XMLTABLE"}
_POSTGRES = Dialect.get_or_raise("postgres")


class _Parser(PostgresParser):
    """sqlglot's parser without its opinions on functions.

    It would rewrite many calls into nodes of its own meaning; here every call keeps the name that
    the user wrote, and what it means is decided by `headrace.functions`; only those with keywords
    between their arguments are left to it. A unary plus stays too, since PostgreSQL names `+x`
    otherwise than `x`.
    """

    FUNCTIONS: ClassVar[Any] = {}
    FUNCTION_PARSERS: ClassVar[Any] = {
        name: parser
        for name, parser in PostgresParser.FUNCTION_PARSERS.items()
        if name in _WITH_KEYWORDS
    }
    UNARY_PARSERS = {
        **PostgresParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: self.expression(
            exp.Anonymous(this=UNARY_PLUS, expressions=[self._parse_unary()])
        ),
    }


def parse(text: str) -> exp.Query:
    """The query's syntax tree; UserError if the text is not exactly one query."""
    try:
        tokens = _POSTGRES.tokenize(text)
        _refuse_junk_after_numbers(tokens)
        statements = [s for s in _Parser(dialect=_POSTGRES).parse(tokens, text) if s is not None]
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
    if not isinstance(statement, exp.Query):
        raise UserError(
            "unsupported-query",
            f"{tokens[0].text.upper()} is not a query",
            hint="A stream table is defined by a SELECT.",
        )
    return statement


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
    """`1_000` and `12abc` would be read as a number with an alias; PostgreSQL never does."""
    for number, following in pairwise(tokens):
        if number.token_type != TokenType.NUMBER or following.start != number.end + 1:
            continue
        if following.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER):
            raise UserError(
                "syntax-error",
                f'trailing junk after numeric literal: "{number.text}{following.text}"',
                detail=f"At line {number.line}, column {number.col - len(number.text) + 1}.",
                hint="Write the number with digits only.",
            )
