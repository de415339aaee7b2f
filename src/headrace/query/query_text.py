"""The text of a view, and a text for PostgreSQL with tables of attached databases replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headrace.errors import UserError
from headrace.query.clauses import check_clauses
from headrace.query.guards import check_precedence
from headrace.query.identifiers import table_name
from headrace.query.parse import parse, reporting_internal_errors, tokenize
from headrace.query.schema import BoundView
from headrace.query.with_clause import defined_by_with, named_tables


@lru_cache(maxsize=256)
def parse_view(view: BoundView) -> exp.Query:
    """Return the view's query, checked as the outer one was.

    The nodes are the same wherever the view is used.
    """
    query = parse(view.query)
    check_clauses(query)
    check_precedence(query)
    return query


@contextmanager
def in_view(view: BoundView) -> Iterator[None]:
    """Name the view in errors from inside: their places count in its text, not in the query's."""
    try:
        yield
    except UserError as error:
        where = f'In view "{view.schema}.{view.name}"'
        if (error.detail or "").startswith("In view"):
            raise
        detail = where + "." if error.detail is None else f"{where}: {error.detail}"
        raise UserError(error.code, error.message, detail=detail, hint=error.hint) from None


Name = tuple[str | None, str]


@reporting_internal_errors()
def with_shadows(text: str, shadows: Mapping[Name, str]) -> str:
    """Return the same text reading other tables.

    `shadows` gives the SQL that stands in for each name.

    Where the text gives the table no name of its own, it keeps the one that it has.
    """
    if not shadows:
        return text
    for table in sorted(named_tables(parse(text)), key=_begin, reverse=True):
        shadow = shadows.get(table_name(table))
        if shadow is None or defined_by_with(table) is not None:
            continue
        end = table.this.meta["end"] + 1
        called = "" if table.args.get("alias") else f" AS {text[table.this.meta['start'] : end]}"
        text = f"{text[: _begin(table)]}{shadow}{called}{text[end:]}"
    return text


def without_semicolon(text: str) -> str:
    """Return the text without a semicolon after its last token."""
    tokens = tokenize(text)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        text = text[: tokens.pop().start]
    return text


def _begin(table: exp.Table) -> int:
    parts = (table.args.get(part) for part in ("catalog", "db", "this"))
    return min(int(part.meta["start"]) for part in parts if part is not None)
