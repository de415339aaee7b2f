"""span_equalities: of equalities that follow from each other, each join has the one it needs.

    t.id = c.movie ∧ t.id = k.movie ∧ c.movie = k.movie     (t ⋈ c) ⋈ k
    →  t.id = c.movie at the first join, t.id = k.movie at the second

Over a tree of inner joins and filters, columns that are equal form classes. A join connects every
class that has columns on both of its sides once, and an input that has several columns of a class
compares them itself. A constant that one column of a class equals is asked of all of them. What
follows from the rest is dropped, what is missing added.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.algebra.scalar import Call, Column, Literal, Scalar
from headrace.functions import call, can_raise, chain
from headrace.plan.conditions import EqualColumns, Pair, alike, equal_pair
from headrace.plan.operators import Filter, Join, Operator
from headrace.plan.passes.push_filters import conjuncts, push_filters


def span_equalities(plan: Operator) -> Operator:
    """Return the plan with just the equalities that its joins and inputs need."""
    spanned = _span(plan)
    if spanned == plan:
        return plan
    # An equality that was found may have been pushed to where it meets others.
    return push_filters(_span(push_filters(spanned)))


def _span(plan: Operator) -> Operator:
    """Return the plan with the conditions of joins above these, where they had to be changed."""
    if not _is_region(plan):
        return plan.with_children(*map(_span, plan.children))
    spanned = _spanned(plan, list(_terms(plan)))
    if spanned is None:
        return _over_inputs(plan)
    return Filter(_bare(plan), chain("and", spanned))


def _is_region(plan: Operator) -> bool:
    """Return whether the node is an inner join or a filter without conditions that can raise."""
    return isinstance(plan, Join | Filter) and not any(map(can_raise, plan.scalars))


def _terms(plan: Operator) -> Iterator[Scalar]:
    """Return the conditions of a region, the lowest first."""
    if _is_region(plan):
        for child in plan.children:
            yield from _terms(child)
        for condition in plan.scalars:
            yield from conjuncts(condition)


def _over_inputs(plan: Operator) -> Operator:
    """Return the region as it is, its inputs improved."""
    if not _is_region(plan):
        return _span(plan)
    return plan.with_children(*map(_over_inputs, plan.children))


def _bare(plan: Operator) -> Operator:
    """Return the region's joins without conditions."""
    match plan:
        case Filter(child=child) if _is_region(plan):
            return _bare(child)
        case Join(left=left, right=right) if _is_region(plan):
            return Join(_bare(left), _bare(right))
        case _:
            return _span(plan)


def _spanned(plan: Operator, terms: list[Scalar]) -> list[Scalar] | None:
    """Return the conditions with just the needed equalities; None if they have these already."""
    written = {pair: term for term in terms if (pair := equal_pair(term)) is not None}
    if not written:
        return None
    equal = EqualColumns(written)
    needed = [
        written.get(pair) or call("=", *pair) for pair in _needed(plan, equal, tuple(written))
    ]
    constants = list(_constants(plan, equal, terms))
    implied = {*written.values(), *constants}
    spanned = [*(term for term in dict.fromkeys(terms) if term not in implied), *constants, *needed]
    return None if len(terms) == len(spanned) and set(terms) == set(spanned) else spanned


def _needed(plan: Operator, equal: EqualColumns, written: tuple[Pair, ...]) -> Iterator[Pair]:
    """Return pairs that make the columns of each class equal, from the inputs up.

    Written pairs come first.
    """
    if not _is_region(plan):
        yield from _within(plan, equal, written)
        return
    for child in plan.children:
        yield from _needed(child, equal, written)
    if not isinstance(plan, Join):
        return
    left, right = frozenset(plan.left.columns), frozenset(plan.right.columns)
    for members in equal.classes(plan.columns):
        on_left = [column for column in members if column in left]
        on_right = [column for column in members if column in right]
        if on_left and on_right:
            first = on_left[0], on_right[0]
            yield next((pair for pair in written if _is_across(pair, on_left, on_right)), first)


def _is_across(pair: Pair, left: list[Column], right: list[Column]) -> bool:
    first, second = pair
    return (first in left and second in right) or (first in right and second in left)


def _within(plan: Operator, equal: EqualColumns, written: tuple[Pair, ...]) -> Iterator[Pair]:
    """Return the pairs for the columns of one input."""
    for members in equal.classes(plan.columns):
        connected = EqualColumns()
        own = [pair for pair in written if pair[0] in members and pair[1] in members]
        for pair in (*own, *((members[0], member) for member in members[1:])):
            if connected.join(*pair):
                yield pair


def _constants(plan: Operator, equal: EqualColumns, terms: list[Scalar]) -> Iterator[Scalar]:
    """Return the equalities of columns with constants.

    They are those of the terms, and those that follow for the other columns of a class.
    """
    constants_by_class: dict[Column, dict[Scalar, Literal]] = {}
    for term in terms:
        if (equation := _constant(term)) is not None:
            constants_by_class.setdefault(equation[0], {})[term] = equation[1]
    for members in equal.classes(plan.columns):
        values = [
            value for column in members for value in constants_by_class.get(column, {}).values()
        ]
        for column in members if values else ():
            yield from constants_by_class.get(column, ())
            if column not in constants_by_class and alike(column.type, values[0].type):
                yield call("=", column, values[0])


def _constant(term: Scalar) -> tuple[Column, Literal] | None:
    match term:
        case Call(function="=", arguments=(Column() as column, Literal() as value)):
            pass
        case Call(function="=", arguments=(Literal() as value, Column() as column)):
            pass
        case _:
            return None
    return (column, value) if alike(column.type, value.type) else None
