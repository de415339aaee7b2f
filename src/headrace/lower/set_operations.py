"""EXCEPT and INTERSECT as operators that can be maintained: counted groups, or matches.

Counted, equal rows of both sides are one group that counts them: the rows of `SetOperation`'s
table are an expression over both counts. As matches, the rows of the left side that have an equal
one on the right, or none, each once: a loop can maintain that, but no counts.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.scalar import Call, Column, Literal, Outer, Scalar, Subquery
from headrace.functions import call
from headrace.lower.build import Fresh, conjunction, distinct, keep, same
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    Matching,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Replicate,
    UnionAll,
)
from headrace.plan.rename import renamed
from headrace.plan.surface_operators import SetOperation
from headrace.types import BIGINT, INTEGER

_NONE = Literal(0, BIGINT)
_ONE = Literal(1, INTEGER)
_MINUS_ONE = Literal(-1, INTEGER)
_NOT_HERE = Literal(None, INTEGER)


def counted(plan: SetOperation, fresh: Fresh) -> Operator:
    """Return the same rows from groups of equal rows that count both sides."""
    if plan.kind == "intersect":
        return _intersection(plan, fresh)
    return _difference(plan, fresh)


def _intersection(plan: SetOperation, fresh: Fresh) -> Operator:
    groups, lefts, rights = _by_side(plan, fresh)
    matching_groups = Filter(groups, call("and", call(">", lefts, _NONE), call(">", rights, _NONE)))
    if plan.once:
        return keep(matching_groups, plan.columns)
    lesser = call("case", call("<", lefts, rights), lefts, rights)
    return keep(Replicate(matching_groups, lesser), plan.columns)


def _difference(plan: SetOperation, fresh: Fresh) -> Operator:
    if plan.once:
        groups, lefts, rights = _by_side(plan, fresh)
        alone = Filter(groups, call("and", call(">", lefts, _NONE), call("=", rights, _NONE)))
        return keep(alone, plan.columns)
    sign, rest = fresh("sign", INTEGER), fresh("rest", BIGINT)
    signed = UnionAll((_with(plan.left, (sign, _ONE)), _with(plan.right, (sign, _MINUS_ONE))))
    groups = Aggregate(signed, plan.columns, (AggregateCall(rest, "sum", sign),))
    more = Filter(groups, call(">", rest, _NONE))
    return keep(Replicate(more, rest), plan.columns)


def _by_side(plan: SetOperation, fresh: Fresh) -> tuple[Aggregate, Column, Column]:
    """Return the groups of equal rows, with the number of rows on each side."""
    on_left, on_right = fresh("on_left", INTEGER), fresh("on_right", INTEGER)
    lefts, rights = fresh("lefts", BIGINT), fresh("rights", BIGINT)
    both = UnionAll(
        (
            _with(plan.left, (on_left, _ONE), (on_right, _NOT_HERE)),
            _with(plan.right, (on_left, _NOT_HERE), (on_right, _ONE)),
        )
    )
    counts = (AggregateCall(lefts, "count", on_left), AggregateCall(rights, "count", on_right))
    return Aggregate(both, plan.columns, counts), lefts, rights


def _with(side: Operator, *added: tuple[Column, Scalar]) -> Project:
    return Project(side, (*((column, column) for column in side.columns), *added))


def as_matches(plan: Operator, fresh: Fresh) -> Operator:
    """Return the plan with every EXCEPT and INTERSECT without ALL as a DISTINCT over matches."""
    plan = plan.with_children(*(as_matches(child, fresh) for child in plan.children))
    plan = plan.with_scalars(tuple(_scalar_as_matches(scalar, fresh) for scalar in plan.scalars))
    if not isinstance(plan, SetOperation) or not plan.once:
        return plan
    # Passes may drop projections of the right side: the left side's columns must not be inside.
    names = {column: fresh("right", column.type) for column in plan.columns}
    right = renamed(plan.right, names)
    equal = conjunction(same(plan.columns, right.columns))
    kind: Matching = "semi" if plan.kind == "intersect" else "anti"
    return distinct(OuterSemiAntiJoin(plan.left, right, kind, equal))


def _scalar_as_matches(scalar: Scalar, fresh: Fresh) -> Scalar:
    match scalar:
        case Call(arguments=arguments):
            rewritten = tuple(_scalar_as_matches(argument, fresh) for argument in arguments)
            return replace(scalar, arguments=rewritten)
        case Outer(scalar=outside):
            return Outer(_scalar_as_matches(outside, fresh))
        case Subquery(plan=inner, test=test):
            tested = None if test is None else _scalar_as_matches(test, fresh)
            return replace(scalar, plan=as_matches(inner, fresh), test=tested)
        case _:
            return scalar
