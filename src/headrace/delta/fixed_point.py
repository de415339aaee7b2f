"""The rounds of a loop, on whatever evaluates plans: Spark over logs, or the pure evaluator.

A loop needs few operations on rows: to evaluate a plan, to add, to test whether there are any. So
the rounds are written once, and tests run them on small bags in milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, Protocol, TypeVar

from headrace.delta.differentiate import only_grows
from headrace.delta.loop import NONE, Names, again, carried, gained, lost, moved, started
from headrace.plan.loop import Loop, Variable, reads
from headrace.plan.operators import Empty, Operator

Rows = TypeVar("Rows")


@dataclass(frozen=True)
class RoundInputs(Generic[Rows]):
    """The rows of the loop's relations that the plans of a round read.

    `found` are rows of the round before, `lost` all rows lost so far; `after` is added to the
    stored rows.
    """

    found: Mapping[str, Rows] = field(default_factory=dict)
    lost: Mapping[str, Rows] = field(default_factory=dict)
    after: Mapping[str, Rows] = field(default_factory=dict)


class Machine(Protocol[Rows]):
    """Evaluates the plans of a loop's rounds."""

    def run(self, variable: Variable, plan: Operator, given: RoundInputs[Rows]) -> Rows:
        """Return the plan's rows, netted."""
        ...

    def sum(self, variable: Variable, *rows: Rows) -> Rows:
        """Return all of the rows together, netted."""
        ...

    def negated(self, rows: Rows) -> Rows: ...

    def count(self, rows: Rows) -> int: ...

    def lowest(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the rows of the lowest level, and the others."""
        ...


class NotConverged(Exception):
    """The rounds did not end; `iterations` of them were done, the last of which found `rows`."""

    def __init__(self, iterations: int, rows: int) -> None:
        super().__init__(f"{rows} rows were found in round {iterations}, and no end is in sight")
        self.iterations, self.rows = iterations, rows


@dataclass(frozen=True)
class FixedPoint(Generic[Rows]):
    """The change of every relation of the loop, and how many rounds found something."""

    changes: Mapping[str, Rows]
    iterations: int


@dataclass
class Rounds(Generic[Rows]):
    """One run of a loop, with at most `most` rounds of deleting and of deriving each."""

    loop: Loop
    machine: Machine[Rows]
    most: int
    iterations: int = 0

    def full(self) -> FixedPoint[Rows]:
        """Return all rows from the states after, as if nothing were stored."""
        if self.loop.levels:
            (variable,) = self.loop.variables
            rows = self._run(variable, started(self.loop, variable), RoundInputs())
            return self._levels(variable, rows)
        rows_by_relation = {
            v.relation: self._run(v, started(self.loop, v), RoundInputs()) for v in self._variables
        }
        rows_of = self._follow(rows_by_relation, {})
        return FixedPoint(rows_of, self.iterations)

    def changed(self, relations: Names, grown: Names = NONE) -> FixedPoint[Rows]:
        """Return the change of all rows that follows from the changes of relations outside.

        Relations in `grown` lost no row. Where no derivation can be lost, the rounds that delete
        are skipped.
        """
        if self.loop.levels:
            (variable,) = self.loop.variables
            rows = self._run(variable, moved(variable, relations), RoundInputs())
            return self._levels(variable, rows)
        grows = all(only_grows(v.body, relations, grown) for v in self._variables)
        deleted = {} if grows else self._delete(relations)
        gone = {name: self.machine.negated(rows) for name, rows in deleted.items()}
        inputs = RoundInputs(lost=deleted, after=gone)
        names = self._some(deleted)
        rows_by_relation = {
            v.relation: self._run(v, again(self.loop, v, relations, names), inputs)
            for v in self._variables
        }
        came = self._follow(rows_by_relation, gone)
        changes = {
            v.relation: self._sum(v, gone.get(v.relation), came[v.relation])
            for v in self._variables
        }
        return FixedPoint(changes, self.iterations)

    @property
    def _variables(self) -> tuple[Variable, ...]:
        return self.loop.variables

    def _delete(self, relations: Names) -> dict[str, Rows]:
        deleted: dict[str, Rows] = {}
        lost_rows = {
            v.relation: self._run(v, lost(self.loop, v, relations, NONE), RoundInputs())
            for v in self._variables
        }
        for number in count(1):
            names = self._some(lost_rows)
            if not names:
                break
            self._count(number, lost_rows)
            for v in self._variables:
                deleted[v.relation] = self._sum(v, deleted.get(v.relation), lost_rows[v.relation])
            inputs = RoundInputs(found=lost_rows, lost=deleted)
            lost_rows = {
                v.relation: self._run(v, self._lost(v, relations, names), inputs)
                for v in self._variables
            }
        return deleted

    def _follow(self, rows_found: dict[str, Rows], stored: Mapping[str, Rows]) -> dict[str, Rows]:
        """Return rows found, and all rows that follow; `stored` is added to the stored rows."""
        total = dict(rows_found)
        for number in count(1):
            names = self._some(rows_found)
            if not names:
                break
            self._count(number, rows_found)
            after = {
                v.relation: self._sum(v, stored.get(v.relation), total[v.relation])
                for v in self._variables
            }
            inputs = RoundInputs(found=rows_found, after=after)
            rows_found = {
                v.relation: self._run(v, self._gained(v, names), inputs) for v in self._variables
            }
            for v in self._variables:
                total[v.relation] = self._sum(v, total[v.relation], rows_found[v.relation])
        return total

    def _levels(self, variable: Variable, waiting: Rows) -> FixedPoint[Rows]:
        """Return the sum of signed rows, carried from level to level until none are left."""
        machine = self.machine
        total = machine.sum(variable)
        for number in count(1):
            if not machine.count(waiting):
                break
            now, waiting = machine.lowest(waiting)
            self._count(number, {variable.relation: now})
            total = machine.sum(variable, total, now)
            inputs = RoundInputs(found={variable.relation: now})
            following = self._run(variable, carried(self.loop, variable), inputs)
            waiting = machine.sum(variable, waiting, following)
        return FixedPoint({variable.relation: total}, self.iterations)

    def _run(self, variable: Variable, plan: Operator, given: RoundInputs[Rows]) -> Rows:
        if isinstance(plan, Empty):
            return self.machine.sum(variable)
        return self.machine.run(variable, plan, given)

    def _sum(self, variable: Variable, one: Rows | None, other: Rows) -> Rows:
        return other if one is None else self.machine.sum(variable, one, other)

    def _some(self, rows: Mapping[str, Rows]) -> Names:
        return frozenset(
            name for name, relation_rows in rows.items() if self.machine.count(relation_rows)
        )

    def _lost(self, variable: Variable, changed: Names, found_names: Names) -> Operator:
        read = _read(variable, found_names)
        return lost(self.loop, variable, changed, read) if read else Empty(variable.body.columns)

    def _gained(self, variable: Variable, found: Names) -> Operator:
        read = _read(variable, found)
        return gained(self.loop, variable, read) if read else Empty(variable.body.columns)

    def _count(self, number: int, found: Mapping[str, Rows]) -> None:
        self.iterations += 1
        if number > self.most:
            raise NotConverged(number, sum(map(self.machine.count, found.values())))


def _read(variable: Variable, names: Names) -> Names:
    return frozenset(name for name in names if reads(variable.body, frozenset({name})))
