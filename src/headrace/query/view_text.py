"""The text of a view, read as part of the query that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from sqlglot import exp

from headrace.errors import UserError
from headrace.query.clauses import check_clauses
from headrace.query.parse import parse
from headrace.query.precedence import check_precedence
from headrace.query.schema import BoundView


@lru_cache(maxsize=256)
def parse_view(view: BoundView) -> exp.Query:
    """The view's query, checked as the outer one was; the same nodes wherever the view is used."""
    query = parse(view.query)
    check_clauses(query)
    check_precedence(query)
    return query


@contextmanager
def in_view(view: BoundView) -> Iterator[None]:
    """Errors inside say which view they are in: places count in its text, not in the query's."""
    try:
        yield
    except UserError as error:
        where = f'In view "{view.schema}.{view.name}"'
        if (error.detail or "").startswith("In view"):
            raise
        detail = where + "." if error.detail is None else f"{where}: {error.detail}"
        raise UserError(error.code, error.message, detail=detail, hint=error.hint) from None
