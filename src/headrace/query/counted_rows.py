"""INTERSECT and EXCEPT: equal rows of both sides as one group that counts them.

    | query | rows of a group with l on the left and r on the right |
    |---|---|
    | A INTERSECT ALL B | the lesser of l and r |
    | A INTERSECT B | one if l > 0 and r > 0 |
    | A EXCEPT ALL B | l − r if that is positive |
    | A EXCEPT B | one if l > 0 and r = 0 |

NULLs are equal here, as they are in GROUP BY.
"""

from __future__ import annotations

from headrace.functions import call
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    Operator,
    Project,
    Replicate,
    UnionAll,
)
from headrace.plan.scalar import Column, Literal, Scalar
from headrace.query.ids import ColumnIds
from headrace.types import BIGINT, INTEGER

_NONE = Literal(0, BIGINT)
_ONE = Literal(1, INTEGER)
_MINUS_ONE = Literal(-1, INTEGER)
_NOT_HERE = Literal(None, INTEGER)


def intersection(left: Operator, right: Operator, ids: ColumnIds, *, once: bool) -> Operator:
    """Rows of both sides, which have the same columns."""
    groups, lefts, rights = _by_side(left, right, ids)
    found = Filter(groups, call("and", call(">", lefts, _NONE), call(">", rights, _NONE)))
    if once:
        return _shown(found, left.columns)
    lesser = call("case", call("<", lefts, rights), lefts, rights)
    return _shown(Replicate(found, lesser), left.columns)


def difference(left: Operator, right: Operator, ids: ColumnIds, *, once: bool) -> Operator:
    """Rows of the left side that the right side, which has the same columns, does not have."""
    if once:
        groups, lefts, rights = _by_side(left, right, ids)
        alone = Filter(groups, call("and", call(">", lefts, _NONE), call("=", rights, _NONE)))
        return _shown(alone, left.columns)
    sign, rest = ids.computed("sign", INTEGER), ids.computed("rest", BIGINT)
    signed = UnionAll((_with(left, (sign, _ONE)), _with(right, (sign, _MINUS_ONE))))
    groups = Aggregate(signed, left.columns, (AggregateCall(rest, "sum", sign),))
    more = Filter(groups, call(">", rest, _NONE))
    return _shown(Replicate(more, rest), left.columns)


def _by_side(left: Operator, right: Operator, ids: ColumnIds) -> tuple[Aggregate, Column, Column]:
    """The groups of equal rows, with the number of rows on each side."""
    on_left, on_right = ids.computed("on_left", INTEGER), ids.computed("on_right", INTEGER)
    lefts, rights = ids.computed("lefts", BIGINT), ids.computed("rights", BIGINT)
    both = UnionAll(
        (
            _with(left, (on_left, _ONE), (on_right, _NOT_HERE)),
            _with(right, (on_left, _NOT_HERE), (on_right, _ONE)),
        )
    )
    counts = (AggregateCall(lefts, "count", on_left), AggregateCall(rights, "count", on_right))
    return Aggregate(both, left.columns, counts), lefts, rights


def _with(side: Operator, *added: tuple[Column, Scalar]) -> Project:
    return Project(side, (*((column, column) for column in side.columns), *added))


def _shown(plan: Operator, columns: tuple[Column, ...]) -> Project:
    return Project(plan, tuple((column, column) for column in columns))
