"""Loops on the pure evaluator, and their definitions: bodies evaluated until nothing comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.delta.fixed_point import RoundInputs
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.loop import Loop, Variable
from headrace.plan.operators import Operator, Scan

Database = Mapping[str, Bag]
"""Rows by relation, with all of their physical columns in order."""
MOST_ROUNDS = 200


@dataclass
class PureMachine:
    """Evaluates the rounds over bags: `stored` are the loop's relations before.

    `physical` gives the columns of every relation. `plans` keeps what was evaluated.
    """

    loop: Loop
    physical: Mapping[str, tuple[str, ...]]
    before: Database
    after: Database
    plans: list[Operator] = field(default_factory=list)

    def run(self, variable: Variable, plan: Operator, given: RoundInputs[Bag]) -> Bag:
        del variable
        self.plans.append(plan)

        def read(scan: Scan) -> Bag:
            return _shown(self._bag(scan, given), scan, self.physical[scan.relation])

        return net(evaluate(plan, read))

    def _bag(self, scan: Scan, given: RoundInputs[Bag]) -> Bag:
        name, nothing = scan.relation, Counter[tuple[object, ...]]()
        own = name in self.loop.relations
        match scan.version:
            case "found":
                return given.found[name]
            case "lost":
                return given.lost.get(name, nothing)
            case "before":
                return self.before[name]
            case "after" if own:
                return net(_sum(self.before[name], given.after.get(name, nothing)))
            case "after":
                return self.after[name]
            case "change":
                assert not own
                return net(_sum(self.after[name], _negated(self.before[name])))
        raise AssertionError(scan.version)

    def sum(self, variable: Variable, *rows: Bag) -> Bag:
        del variable
        return net(_sum(*rows))

    def negated(self, rows: Bag) -> Bag:
        return _negated(rows)

    def count(self, rows: Bag) -> int:
        return len(rows)

    def lowest(self, rows: Bag) -> tuple[Bag, Bag]:
        level = min(row[-1] for row in rows)
        now = Counter({row: weight for row, weight in rows.items() if row[-1] == level})
        return now, Counter({row: weight for row, weight in rows.items() if row[-1] != level})


def least(loop: Loop, physical: Mapping[str, tuple[str, ...]], outside: Database) -> Database:
    """The least fixed point over sets, or the sum of all levels, by evaluating whole bodies."""
    rows: dict[str, Bag] = {name: Counter() for name in loop.relations}
    for _ in range(MOST_ROUNDS):
        known = {**outside, **rows}

        def read(scan: Scan, known: Database = known) -> Bag:
            return _shown(known[scan.relation], scan, physical[scan.relation])

        found: dict[str, Bag] = {}
        for variable in loop.variables:
            bag = evaluate(variable.body, read)
            once = bag if loop.levels else Counter({row: 1 for row, n in bag.items() if n > 0})
            found[variable.relation] = net(once)
        if found == rows:
            return rows
        rows = found
    raise AssertionError("no fixed point")


def _shown(bag: Bag, scan: Scan, physical: tuple[str, ...]) -> Bag:
    places = [physical.index(name) for name, _ in scan.fields]
    shown: Bag = Counter()
    for row, weight in bag.items():
        shown[tuple(row[place] for place in places)] += weight
    return shown


def _sum(*bags: Bag) -> Bag:
    total: Bag = Counter()
    for bag in bags:
        for row, weight in bag.items():
            total[row] += weight
    return total


def _negated(bag: Bag) -> Bag:
    return Counter({row: -weight for row, weight in bag.items()})
