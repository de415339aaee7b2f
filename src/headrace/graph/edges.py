"""The dependency of a query on each relation that it reads: monotone, or not. Pure.

A query is monotone in a relation if more rows in it never take rows from the result. It is decided
on the plan as it is written, operator by operator; what is not known to be monotone is not.

| operator | monotone in | not monotone in |
|---|---|---|
| Filter, Project, Unnest, UnionAll, Join, DISTINCT | all inputs | |
| EXISTS, IN, = ANY as a condition of their own | outer and inner query | |
| NOT EXISTS, NOT IN, ALL | the outer query | the inner query |
| any other subquery in an expression | the outer query | the inner query |
| INTERSECT | both sides | |
| EXCEPT | the left side | the right side |
| EXCEPT ALL, INTERSECT ALL | | both sides |
| aggregate, window, LIMIT, DISTINCT ON | | the input |
| LEFT JOIN | the side that is kept | the side that is padded |
| FULL JOIN | | both sides |
| LATERAL | both sides, of a LEFT JOIN LATERAL the outer | its inner side |
| WITH RECURSIVE | both terms, if the recursive one is monotone in itself | else both terms |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headrace.algebra.scalar import Call, Outer, Scalar, Subquery
from headrace.plan.operators import (
    Aggregate,
    Filter,
    FullJoin,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Recursive,
    Scan,
    Top,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from headrace.plan.passes.push_filters import conjuncts
from headrace.plan.surface_operators import Lateral, SetOperation

Words = tuple[str, ...]
"""Operators that stand between a relation and the result and are not monotone in it."""


@dataclass(frozen=True)
class Edge:
    """A relation that a query reads, and the operators that make it non-monotone in that relation.

    `operators`, the outermost first, are named as users know them: NOT EXISTS, EXCEPT, aggregate …
    """

    relation: str
    operators: Words = ()

    @property
    def monotone(self) -> bool:
        return not self.operators


def classify(written: Operator) -> tuple[Edge, ...]:
    """Return an edge for every relation that a plan reads, in the order in which it first does.

    A relation that is read several times has the operators of all its readings.
    """
    operators_by_relation: dict[str, dict[str, None]] = {}
    for relation, words in _reads(written, ()):
        operators_by_relation.setdefault(relation, {}).update(dict.fromkeys(words))
    return tuple(Edge(relation, tuple(words)) for relation, words in operators_by_relation.items())


Read = tuple[str, Words]


def _reads(plan: Operator, above: Words) -> Iterator[Read]:
    """Yield every reading of a relation, with the non-monotone operators on the path to it."""
    match plan:
        case Scan(relation=relation):
            yield relation, above
        case Values():
            yield from _values(plan.scalars, above)
        case Filter(child=child, condition=condition):
            yield from _reads(child, above)
            yield from _condition(condition, above)
        case Project(child=child) | Unnest(child=child):
            yield from _reads(child, above)
            yield from _values(plan.scalars, above)
        case Join(left=left, right=right, condition=condition):
            yield from _reads(left, above)
            yield from _reads(right, above)
            yield from _condition(condition, above)
        case UnionAll(inputs=inputs):
            for branch in inputs:
                yield from _reads(branch, above)
        case Aggregate(child=child, keys=keys, calls=calls):
            yield from _reads(child, above if keys and not calls else (*above, "aggregate"))
        case SetOperation():
            yield from _set_operation(plan, above)
        case OuterSemiAntiJoin(left=left, right=right, kind=kind, condition=condition):
            missing = {"left": ("outer join",), "anti": ("NOT EXISTS",), "semi": ()}[kind]
            yield from _reads(left, above)
            yield from _reads(right, (*above, *missing))
            yield from _condition(condition, (*above, *missing))
        case Lateral(child=child, rows=rows, condition=condition, keep=keep):
            inside = (*above, "outer join") if keep else above
            yield from _reads(child, above)
            yield from _reads(rows.plan, inside)
            yield from _condition(condition, inside)
        case Recursive():
            yield from _recursive(plan, above)
        case _:
            inside = (*above, _word(plan))
            for child in plan.children:
                yield from _reads(child, inside)
            yield from _values(plan.scalars, inside)


def _word(plan: Operator) -> str:
    match plan:
        case Window():
            return "window"
        case Top(keys=keys):
            return "DISTINCT ON" if keys else "LIMIT"
        case FullJoin():
            return "outer join"
        case _:
            return type(plan).__name__


def _set_operation(plan: SetOperation, above: Words) -> Iterator[Read]:
    word = plan.kind.upper() if plan.once else f"{plan.kind.upper()} ALL"
    either = above if plan.once else (*above, word)
    yield from _reads(plan.left, either)
    yield from _reads(plan.right, either if plan.kind == "intersect" else (*above, word))


def _recursive(plan: Recursive, above: Words) -> Iterator[Read]:
    """Yield the readings of both terms, below the operators of the recursive term.

    What the recursive term does to its own rows, it does to all rows that they were derived from.
    """
    readings = [*_reads(plan.base, ()), *_reads(plan.step, ())]
    own = dict.fromkeys(
        word for relation, words in readings if relation == plan.variable for word in words
    )
    for relation, words in readings:
        if relation != plan.variable:
            yield relation, tuple(dict.fromkeys((*above, *own, *words)))


def _condition(condition: Scalar | None, above: Words) -> Iterator[Read]:
    """Yield the readings of a condition that selects rows.

    Of its terms, only subqueries may be monotone.
    """
    for term in () if condition is None else conjuncts(condition):
        match term:
            case Subquery(kind="exists" | "any"):
                yield from _inner(term, above)
            case Call(function="not", arguments=(Subquery(kind="exists" | "any") as inner,)):
                yield from _inner(inner, (*above, _negated(inner)))
            case _:
                yield from _values((term,), above)


def _inner(subquery: Subquery, above: Words) -> Iterator[Read]:
    yield from _reads(subquery.plan, above)
    if subquery.test is not None:
        yield from _values((subquery.test,), above)


def _negated(subquery: Subquery) -> str:
    if subquery.test is None:
        return "NOT EXISTS"
    return "NOT IN" if _is_equality(subquery.test) else "ALL"


def _is_equality(test: Scalar) -> bool:
    """Return whether the test of an ANY is that of IN."""
    return all(isinstance(term, Call) and term.function == "=" for term in conjuncts(test))


def _values(scalars: Iterable[Scalar], above: Words) -> Iterator[Read]:
    """Yield the readings of expressions whose values count: no subquery in them is monotone."""
    for scalar in scalars:
        match scalar:
            case Call(arguments=arguments):
                yield from _values(arguments, above)
            case Outer(scalar=outside):
                yield from _values((outside,), above)
            case Subquery():
                yield from _inner(scalar, (*above, _as_value(scalar)))


def _as_value(subquery: Subquery) -> str:
    match subquery.kind:
        case "scalar":
            return "scalar subquery"
        case "exists":
            return "EXISTS inside an expression"
        case _:
            return "IN, ANY or ALL inside an expression"
