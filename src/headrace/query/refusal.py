"""Errors that say where in the query's text they are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlglot import exp

from headrace.errors import UserError
from headrace.types import Type

EQUAL_INTERVALS = (
    "To PostgreSQL '1 day' and '24 hours' are equal, and it shows either."
    " Use extract(epoch FROM …), which has one value for both."
)


def position(node: exp.Expr) -> tuple[int, int] | None:
    """Line and column where the node's text begins, both from 1, if the parser kept them.

    Only names, constants and calls carry a place; any other node begins with its first one.
    """
    places = []
    for part in node.walk():
        meta = part.meta
        if "start" in meta:
            # sqlglot records the column where a token ends.
            length = meta["end"] - meta["start"]
            places.append((meta["start"], meta["line"], meta["col"] - length))
    if not places:
        return None
    _, line, column = min(places)
    return (line, column) if column > 0 else None


def refuse(code: str, message: str, node: exp.Expr, hint: str | None = None) -> UserError:
    """The error for a part of the query, to be raised."""
    where = position(node)
    detail = None if where is None else f"At line {where[0]}, column {where[1]}."
    return UserError(code, message, detail=detail, hint=hint)


def incomparable(clause: str, type_: Type, node: exp.Expr) -> UserError:
    """The error for a clause that compares values of a type that does not compare."""
    hint = EQUAL_INTERVALS if type_.kind == "interval" else None
    hint = "Cast it to text." if type_.is_text else hint
    message = f"{clause} on {type_.sql} is not maintained"
    return refuse("unsupported-type", message, node, hint)


@contextmanager
def located(node: exp.Expr) -> Iterator[None]:
    """Adds the node's place to an error of the table of functions, which knows none."""
    try:
        yield
    except UserError as error:
        if error.detail is not None:
            raise
        raise refuse(error.code, error.message, node, error.hint) from None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A hint with the candidate that is spelled most alike."""
    close = difflib.get_close_matches(name, sorted(set(candidates)), n=1)
    return f'Did you mean "{close[0]}"?' if close else None
