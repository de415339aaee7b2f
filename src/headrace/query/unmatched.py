"""The errors for numerics that need more digits than are stored."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.errors import UserError
from headrace.query.refusal import refuse
from headrace.types import Type
from headrace.types.kinds import MAXIMUM_DIGITS


def unmatched(types: Sequence[Type], what: str, node: exp.Expr) -> UserError:
    """PostgreSQL has no common type either, or it is a numeric of more digits than are stored."""
    elements = [type_.element or type_ for type_ in types]
    if not all(type_.is_integer or type_.kind == "numeric" for type_ in elements):
        names = ", ".join(dict.fromkeys(type_.sql for type_ in types))
        return refuse("invalid-query", f"{what} types {names} cannot be matched", node)
    return too_many_digits(what, types, node)


def too_many_digits(what: str, types: Sequence[Type], node: exp.Expr | None = None) -> UserError:
    """The error for numerics that need more digits together than are stored."""
    names = " and ".join(dict.fromkeys(map(spelled, types)))
    message = f"{what} of {names} needs more than {MAXIMUM_DIGITS} digits"
    hint = "Cast the values to a numeric(p, s) with fewer digits."
    if node is None:
        return UserError("unsupported-type", message, hint=hint)
    return refuse("unsupported-type", message, node, hint)


def require_exact(type_: Type, what: str, node: exp.Expr) -> None:
    """Refuse to tell apart values whose last digits were cut: equal ones may not be equal."""
    if not type_.is_rounded_product:
        return
    message = f"{what} of a product that needs more than {MAXIMUM_DIGITS} digits is not maintained"
    hint = "Cast the factors to a numeric(p, s) with fewer digits."
    raise refuse("unsupported-type", f"{message}: it is {spelled(type_)}", node, hint)


def spelled(type_: Type) -> str:
    """The type with the digits that it is stored with."""
    if type_.element is not None:
        return f"{spelled(type_.element)}[]"
    if type_.kind != "numeric" or type_.declared:
        return type_.sql
    return f"numeric (stored as {type_.spark})"
