"""The evaluator with one short cut: rows that an equality keeps apart are never paired.

Every condition is still evaluated, by its definition, on every pair that is left; joins of a dozen
tables would have no end without this.
"""

from __future__ import annotations

from collections import defaultdict
from decimal import localcontext

from headrace.algebra.scalar import Call, Column, Scalar, Subquery, Value, columns_of
from headrace.functions.numbers import WIDE
from headrace.plan.evaluate import Bag
from headrace.plan.evaluate.evaluator import Evaluator, Read, Row
from headrace.plan.operators import Filter, Join, Operator, OuterSemiAntiJoin
from headrace.plan.surface_operators import Lateral

Weighted = list[tuple[Row, int]]


def evaluate(plan: Operator, read: Read) -> Bag:
    """The plan's rows, as the evaluator without short cuts has them."""
    with localcontext(WIDE):
        return Quick(read).bag(plan)


class Quick(Evaluator):
    """Conditions sink to the first join that has their columns, and equalities find pairs there."""

    def bag(self, plan: Operator) -> Bag:
        match plan:
            case Filter() | Join():
                return self._of(plan, self._chosen(plan, ()))
            case OuterSemiAntiJoin():
                return self._match(plan)
            case Lateral():
                return self._lateral(plan)
        return super().bag(plan)

    def scalar(self, expression: Scalar, row: Row) -> Value:
        if isinstance(expression, Subquery):
            return Quick(self.read, row, self).value(expression)
        return super().scalar(expression, row)

    def _chosen(self, plan: Operator, wanted: tuple[Scalar, ...]) -> Weighted:
        """The plan's rows that fulfil all of these conditions."""
        match plan:
            case Filter(child=child, condition=condition):
                return self._chosen(child, (*wanted, *_parts(condition)))
            case Join(left=left, right=right, condition=condition):
                every = wanted if condition is None else (*wanted, *_parts(condition))
                lefts, rights, rest = _split(every, left, right)
                pairs = self._paired(
                    self._chosen(left, lefts), self._chosen(right, rights), left, right, rest
                )
                return [
                    (pair, weight)
                    for row, others in pairs
                    for pair, weight in others
                    if self._all(rest, pair)
                ]
        return [one for one in self.rows(plan) if self._all(wanted, one[0])]

    def _all(self, conditions: tuple[Scalar, ...], row: Row) -> bool:
        return all(self.scalar(condition, row) is True for condition in conditions)

    def _paired(
        self,
        lefts: Weighted,
        rights: Weighted,
        left: Operator,
        right: Operator,
        conditions: tuple[Scalar, ...],
    ) -> list[tuple[tuple[Row, int], Weighted]]:
        """Each row of the left with the pairs that the equalities leave."""
        keys = _keys(conditions, left, right)
        index: defaultdict[tuple[Value, ...], Weighted] = defaultdict(list)
        for row, weight in rights:
            index[tuple(self.scalar(key, row) for _, key in keys)].append((row, weight))
        return [
            (
                (row, weight),
                [
                    ({**row, **other}, weight * w)
                    for other, w in index.get(tuple(self.scalar(key, row) for key, _ in keys), ())
                ],
            )
            for row, weight in lefts
        ]

    def _match(self, plan: OuterSemiAntiJoin) -> Bag:
        conditions = _parts(plan.condition)
        nothing: dict[Column, Value] = dict.fromkeys(plan.right.columns)
        found: Weighted = []
        pairs = self._paired(
            self.rows(plan.left), self.rows(plan.right), plan.left, plan.right, conditions
        )
        for (row, weight), others in pairs:
            matches = [(pair, w) for pair, w in others if self._all(conditions, pair)]
            if plan.kind == "left":
                found += matches or [({**row, **nothing}, weight)]
            elif bool(matches) == (plan.kind == "semi"):
                found.append((row, weight))
        return self._of(plan, found)

    def _lateral(self, plan: Lateral) -> Bag:
        nothing: dict[Column, Value] = dict.fromkeys(plan.rows.plan.columns)
        found: Weighted = []
        for row, weight in self.rows(plan.child):
            inner = Quick(self.read, row, self).rows(plan.rows.plan)
            pairs = [({**row, **other}, weight * w) for other, w in inner]
            matches = [(pair, w) for pair, w in pairs if self._holds(plan.condition, pair)]
            found += matches or ([({**row, **nothing}, weight)] if plan.keep else [])
        return self._of(plan, found)


def _parts(condition: Scalar | None) -> tuple[Scalar, ...]:
    match condition:
        case None:
            return ()
        case Call(function="and", arguments=arguments):
            return tuple(part for argument in arguments for part in _parts(argument))
    return (condition,)


def _split(
    conditions: tuple[Scalar, ...], left: Operator, right: Operator
) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...], tuple[Scalar, ...]]:
    """The conditions of the left alone, of the right alone, and the rest."""
    ours, theirs = frozenset(left.columns), frozenset(right.columns)
    reads = [(condition, columns_of(condition)) for condition in conditions]
    lefts = tuple(condition for condition, read in reads if read <= ours)
    rights = tuple(c for c, read in reads if read <= theirs and not read <= ours)
    rest = tuple(c for c, read in reads if not read <= ours and not read <= theirs)
    return lefts, rights, rest


def _keys(
    conditions: tuple[Scalar, ...], left: Operator, right: Operator
) -> list[tuple[Scalar, Scalar]]:
    """Equal expressions of either side whose values Python compares as the evaluator does."""
    ours, theirs = frozenset(left.columns), frozenset(right.columns)
    found: list[tuple[Scalar, Scalar]] = []
    for condition in conditions:
        match condition:
            case Call(function="=", arguments=(one, other)) if _plain(one) and _plain(other):
                for a, b in ((one, other), (other, one)):
                    if _of(a, ours) and _of(b, theirs):
                        found.append((a, b))
                        break
    return found


def _of(scalar: Scalar, columns: frozenset[Column]) -> bool:
    read = columns_of(scalar)
    return bool(read) and read <= columns


def _plain(scalar: Scalar) -> bool:
    return not scalar.type.is_float and scalar.type.element is None
