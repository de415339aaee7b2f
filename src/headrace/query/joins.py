"""The joins of FROM as operators.

A RIGHT JOIN is a LEFT JOIN with its sides exchanged: what its columns are called, and in which
order, is the scope's business.
"""

from __future__ import annotations

from typing import Literal as OneOf

from sqlglot import exp

from headrace.algebra.scalar import Scalar
from headrace.functions import call, cast
from headrace.functions.numbers import as_numeric, undeclared
from headrace.plan.operators import FullJoin, Join, MatchJoin, Operator
from headrace.query.coerce import as_type, common_to, compared, lossless_together
from headrace.query.refusal import refuse
from headrace.query.unmatched import require_exact

Kind = OneOf["inner", "left", "right", "full"]


def join_kind(join: exp.Join) -> Kind:
    """Which rows a join keeps; CROSS, NATURAL and the rest say what it compares."""
    side, kind, method = (join.args.get(name) for name in ("side", "kind", "method"))
    match side:
        case None if kind != "OUTER":
            return "inner"
        case "LEFT" if kind in (None, "OUTER"):
            return "left"
        case "RIGHT" if kind in (None, "OUTER"):
            return "right"
        case "FULL" if kind in (None, "OUTER"):
            return "full"
    name = " ".join(part for part in (method, side, kind, "JOIN") if part)
    raise refuse("syntax-error", f"{name} is not a join", join)


def joined(kind: Kind, left: Operator, right: Operator, condition: Scalar | None) -> Operator:
    """The rows of a join; its columns are those of both sides, in no order of their own."""
    match kind:
        case "inner":
            return Join(left, right, condition)
        case "left":
            return MatchJoin(left, right, "left", condition)
        case "right":
            return MatchJoin(right, left, "left", condition)
        case "full":
            return FullJoin(left, right, condition)


def equal_columns(left: Scalar, right: Scalar, join: exp.Join) -> Scalar:
    """What USING compares."""
    for side in (left, right):
        require_exact(side.type, "JOIN/USING", join)
    return call("=", *compared(left, right))


def merged_column(kind: Kind, left: Scalar, right: Scalar, join: exp.Join) -> Scalar:
    """The one column that USING makes of two: of the side that is never padded, else of either.

    Both are brought to one type; an inner join shows the one that has it.
    """
    if kind != "full" and not lossless_together((left, right)):
        # One side alone is shown; beside other digits PostgreSQL shows a numeric without any.
        shown = right if kind == "right" else left
        return cast(shown, undeclared(as_numeric(shown.type)))
    common = common_to((left, right), "JOIN/USING", join)
    first, second = as_type(left, common), as_type(right, common)
    match kind:
        case "left":
            return first
        case "right":
            return second
        case "full":
            return call("coalesce", first, second)
        case "inner":
            return second if first != left and second == right else first
