"""compute_keys: expressions that a join compares are columns of its inputs.

    A ⋈[a.k = f(b.k)] B   →   A ⋈[a.k = key] π[*, key = f(b.k)](B)

So they are keys like others: for lookups of rows that match a change, and for rules that know only
equal columns. An expression is computed on the one input of the joins that it reads; what
can raise stays in the condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from headrace.algebra.scalar import Call, Column, Scalar, columns_of
from headrace.functions import can_raise, chain
from headrace.plan.operators import Filter, FullJoin, Join, Operator, OuterSemiAntiJoin, Project
from headrace.plan.passes.push_filters import conjuncts

Computed = dict[Scalar, Column]
AnyJoin = Join | OuterSemiAntiJoin | FullJoin


def compute_keys(plan: Operator) -> Operator:
    """Return the plan with joins that compare columns, where their sides read one input each."""
    if not any(_is_computed(term) for join in _joins(plan) for term in _terms(join)):
        return plan
    return _KeyComputation({column.id for column in _columns(plan)}).shown(plan)


class _KeyComputation:
    """The pass with names for the columns of keys, which no other column has."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def shown(self, plan: Operator) -> Operator:
        """Return the plan with the same columns as before."""
        computed = self._computed(plan)
        if computed.columns == plan.columns:
            return computed
        return Project(computed, tuple((column, column) for column in plan.columns))

    def _computed(self, plan: Operator) -> Operator:
        """Return the plan, perhaps with columns of keys beside its own."""
        if isinstance(plan, Filter):
            return plan.with_children(self._computed(plan.child))
        if not isinstance(plan, Join | OuterSemiAntiJoin | FullJoin):
            return plan.with_children(*map(self.shown, plan.children))
        terms: list[Scalar] = []
        sides = plan.left, plan.right
        keys: tuple[Computed, Computed] = ({}, {})
        for term in _terms(plan):
            terms.append(self._compared(term, sides, keys) if _is_computed(term) else term)
        left, right = (
            _with(self._computed(side), computed)
            for side, computed in zip(sides, keys, strict=True)
        )
        condition = chain("and", terms) if terms else plan.condition
        return replace(plan, left=left, right=right, condition=condition)

    def _compared(
        self, term: Scalar, sides: tuple[Operator, Operator], keys: tuple[Computed, Computed]
    ) -> Scalar:
        """Return the equality of columns, if each of its sides reads one side of the join."""
        assert isinstance(term, Call)
        places = [_place(argument, sides) for argument in term.arguments]
        if sorted(place for place in places if place is not None) != [0, 1]:
            return term
        arguments: list[Scalar] = []
        for argument, place in zip(term.arguments, places, strict=True):
            assert place is not None
            if isinstance(argument, Column):
                arguments.append(argument)
                continue
            if argument not in keys[place]:
                keys[place][argument] = self._column(argument)
            arguments.append(keys[place][argument])
        return replace(term, arguments=tuple(arguments))

    def _column(self, scalar: Scalar) -> Column:
        first = min(column.id for column in columns_of(scalar))
        number = 1
        while (name := f"{first}_key{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return Column(name, scalar.type)


def _is_computed(term: Scalar) -> bool:
    """Return whether the term is an equality with an expression that cannot raise."""
    if not isinstance(term, Call) or term.function not in ("=", "is not distinct from"):
        return False
    return any(isinstance(side, Call) for side in term.arguments) and not can_raise(term)


def _place(scalar: Scalar, sides: tuple[Operator, Operator]) -> int | None:
    """Return the number of the side that can compute the scalar from one of its inputs."""
    read = columns_of(scalar)
    for place, side in enumerate(sides):
        if read and read <= frozenset(side.columns):
            return place if isinstance(scalar, Column) or _reads_one_input(side, read) else None
    return None


def _reads_one_input(plan: Operator, read: frozenset[Column]) -> bool:
    match plan:
        case Join() | FullJoin() | OuterSemiAntiJoin():
            return any(
                read <= frozenset(child.columns) and _reads_one_input(child, read)
                for child in plan.children
            )
        case Filter(child=child):
            return _reads_one_input(child, read)
        case _:
            return True


def _with(plan: Operator, keys: Mapping[Scalar, Column]) -> Operator:
    """Return the plan with columns for these expressions, computed as deep as they can be."""
    if not keys:
        return plan
    match plan:
        case Filter(child=child):
            return replace(plan, child=_with(child, keys))
        case Join() | OuterSemiAntiJoin():
            left = frozenset(plan.left.columns)
            on_left = {scalar: key for scalar, key in keys.items() if columns_of(scalar) <= left}
            rest = {scalar: key for scalar, key in keys.items() if scalar not in on_left}
            lower = replace(plan, left=_with(plan.left, on_left))
            if isinstance(lower, Join):
                return replace(lower, right=_with(lower.right, rest))
            # A row without a match has as its key the expression's value over NULLs.
            return _beside(lower, rest)
        case _:
            return _beside(plan, keys)


def _beside(plan: Operator, keys: Mapping[Scalar, Column]) -> Operator:
    if not keys:
        return plan
    outputs = tuple((column, column) for column in plan.columns)
    return Project(plan, (*outputs, *((key, scalar) for scalar, key in keys.items())))


def _joins(plan: Operator) -> Iterator[AnyJoin]:
    if isinstance(plan, Join | OuterSemiAntiJoin | FullJoin):
        yield plan
    for child in plan.children:
        yield from _joins(child)


def _terms(join: AnyJoin) -> tuple[Scalar, ...]:
    return () if join.condition is None else conjuncts(join.condition)


def _columns(plan: Operator) -> Iterator[Column]:
    yield from plan.columns
    for child in plan.children:
        yield from _columns(child)
