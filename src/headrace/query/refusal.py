"""Errors that point to a place in the text of the query."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from sqlglot import exp

from headrace.errors import UserError
from headrace.types import Type
from headrace.types.kinds import MAXIMUM_DIGITS

EQUAL_INTERVALS = (
    "To PostgreSQL '1 day' and '24 hours' are equal, and it shows either."
    " Use extract(epoch FROM …), which has one value for both."
)


def position(node: exp.Expr) -> tuple[int, int] | None:
    """Return line and column where the node's text begins, both from 1, if the parser kept them.

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
    """Return the error for a part of the query, to be raised."""
    where = position(node)
    detail = None if where is None else f"At line {where[0]}, column {where[1]}."
    return UserError(code, message, detail=detail, hint=hint)


def incomparable(clause: str, type_: Type, node: exp.Expr) -> UserError:
    """Return the error for a clause that compares values of a type that does not compare."""
    hint = EQUAL_INTERVALS if type_.kind == "interval" else None
    hint = "Cast it to text." if type_.is_text else hint
    message = f"{clause} on {type_.sql} is not maintained"
    return refuse("unsupported-type", message, node, hint)


@contextmanager
def located(node: exp.Expr) -> Iterator[None]:
    """Add the node's place to an error of the table of functions, which knows no place."""
    try:
        yield
    except UserError as error:
        if error.detail is not None:
            raise
        raise refuse(error.code, error.message, node, error.hint) from None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Return a hint with the candidate that is spelled most alike."""
    close = difflib.get_close_matches(name, sorted(set(candidates)), n=1)
    return f'Did you mean "{close[0]}"?' if close else None


def unmatched(types: Sequence[Type], what: str, node: exp.Expr) -> UserError:
    """Return the error for branches without a common type.

    PostgreSQL has none either, or it is a numeric of more digits than are stored.
    """
    elements = [type_.element or type_ for type_ in types]
    if not all(type_.is_integer or type_.kind == "numeric" for type_ in elements):
        names = ", ".join(dict.fromkeys(type_.sql for type_ in types))
        return refuse("invalid-query", f"{what} types {names} cannot be matched", node)
    return too_many_digits(what, types, node)


def too_many_digits(what: str, types: Sequence[Type], node: exp.Expr | None = None) -> UserError:
    """Return the error for numerics that need more digits together than are stored."""
    names = " and ".join(dict.fromkeys(map(spelled, types)))
    message = f"{what} of {names} needs more than {MAXIMUM_DIGITS} digits"
    hint = "Cast the values to a numeric(p, s) with fewer digits."
    if node is None:
        return UserError("unsupported-type", message, hint=hint)
    return refuse("unsupported-type", message, node, hint)


def require_exact(type_: Type, what: str, node: exp.Expr) -> None:
    """Refuse to compare values whose last digits were cut: equal ones may not be equal."""
    if not type_.is_rounded_product:
        return
    message = f"{what} of a product that needs more than {MAXIMUM_DIGITS} digits is not maintained"
    hint = "Cast the factors to a numeric(p, s) with fewer digits."
    raise refuse("unsupported-type", f"{message}: it is {spelled(type_)}", node, hint)


def spelled(type_: Type) -> str:
    """Return the type with the digits that it is stored with."""
    if type_.element is not None:
        return f"{spelled(type_.element)}[]"
    if type_.kind != "numeric" or type_.declared:
        return type_.sql
    return f"numeric (stored as {type_.spark})"
