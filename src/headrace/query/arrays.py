"""Lists written as arrays, which is how PostgreSQL prints IN and NOT IN of a view."""

from __future__ import annotations

from sqlglot import exp


def array_items(comparison: exp.Expr) -> list[exp.Expr] | None:
    """The items of `x = ANY (ARRAY[…])` and of `x <> ALL (ARRAY[…])`, else None.

    A cast of the whole array is a cast of every item.
    """
    right = comparison.args["expression"]
    match comparison, right:
        case exp.EQ(), exp.Any(this=listed):
            return listed_items(listed)
        case exp.NEQ(), exp.Anonymous(this=str() as name, expressions=[listed]):
            return listed_items(listed) if name.upper() == "ALL" else None
    return None


def listed_items(listed: exp.Expr) -> list[exp.Expr] | None:
    """The items of an array that is spelled out, else None."""
    match listed:
        case exp.Paren(this=inner):
            return listed_items(inner)
        case exp.Array(expressions=[_, *_] as items):
            return items
        case exp.Cast(this=inner, to=exp.DataType(this=exp.DType.ARRAY, expressions=[to])):
            inside = listed_items(inner)
            return inside and [exp.Cast(this=item.copy(), to=to.copy()) for item in inside]
    return None
