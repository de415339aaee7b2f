"""The rounds of a stage that is a loop, and a recursion anew, with the pure evaluator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from fuzz.quick import evaluate
from headrace.delta.fixed_point import RoundInputs, Rounds
from headrace.plan.evaluate import Bag, net
from headrace.plan.loop import Loop, Variable
from headrace.plan.operators import Operator, Scan
from headrace.plan.stages import Stage

MOST_ROUNDS = 500
Read = Callable[[Scan], Bag]
Fields = tuple[str, ...]


@dataclass(frozen=True)
class BagMachine:
    """Evaluates rounds over bags; `read` gives what is outside, `stored` the loop's own rows."""

    variable: Variable
    read: Read
    stored: Bag

    def run(self, variable: Variable, plan: Operator, given: RoundInputs[Bag]) -> Bag:
        def read(scan: Scan) -> Bag:
            if scan.relation != variable.relation:
                return self.read(scan)
            return rearranged(
                self._own(scan, given), variable.physical, (p for p, _ in scan.fields)
            )

        return net(evaluate(plan, read))

    def _own(self, scan: Scan, given: RoundInputs[Bag]) -> Bag:
        name = scan.relation
        match scan.version:
            case "found":
                return given.found[name]
            case "lost":
                return given.lost.get(name, Counter())
            case "before":
                return self.stored
            case "after":
                return self.sum(self.variable, self.stored, given.after.get(name, Counter()))
        raise AssertionError(scan.version)

    def sum(self, variable: Variable, *rows: Bag) -> Bag:
        del variable
        total: Bag = Counter()
        for bag in rows:
            total.update(bag)
        return net(total)

    def negated(self, rows: Bag) -> Bag:
        return Counter({row: -weight for row, weight in rows.items()})

    def count(self, rows: Bag) -> int:
        return len(rows)

    def lowest(self, rows: Bag) -> tuple[Bag, Bag]:
        level = min(row[-1] for row in rows)
        lowest: Bag = Counter({row: n for row, n in rows.items() if row[-1] == level})
        return lowest, Counter({row: n for row, n in rows.items() if row[-1] != level})


def is_loop(stage: Stage) -> bool:
    return stage.variable is not None or stage.recursion is not None


def whole(stage: Stage, read: Read) -> Bag:
    """All rows that a loop's stage stores."""
    fields = stored_fields(stage)
    if stage.variable is None:
        return _anew(stage, read)
    machine = BagMachine(stage.variable, read, Counter())
    found = Rounds(_loop(stage), machine, MOST_ROUNDS).full()
    return rearranged(found.changes[stage.relation], stage.variable.physical, fields)


def change(stage: Stage, read: Read, stored: Bag, moved: frozenset[str]) -> Bag:
    """What a loop's stage appends to what is stored; a recursion that is none is taken anew."""
    fields = stored_fields(stage)
    if stage.variable is None:
        rows = _anew(stage, read)
        rows.subtract(stored)
        return net(rows)
    before = rearranged(stored, fields, stage.variable.physical)
    machine = BagMachine(stage.variable, read, before)
    found = Rounds(_loop(stage), machine, MOST_ROUNDS).changed(moved)
    return rearranged(found.changes[stage.relation], stage.variable.physical, fields)


def _anew(stage: Stage, read: Read) -> Bag:
    """Over the states after; what a recursion reads of itself is the evaluator's own business."""
    assert stage.recursion is not None
    shown = (column for _, column in stage.outputs)
    places = dict(zip(shown, (physical for physical, _ in stage.visible), strict=True))
    names = tuple(places[column] for column in stage.recursion.columns)
    rows = evaluate(stage.recursion, lambda scan: read(replace(scan, version="after")))
    return rearranged(net(rows), names, stored_fields(stage))


def _loop(stage: Stage) -> Loop:
    assert stage.variable is not None
    return Loop((stage.variable,), stage.levels)


def stored_fields(stage: Stage) -> Fields:
    return tuple(physical for physical, _ in stage.stored)


def rearranged(rows: Bag, fields: Fields, wanted: Iterable[str]) -> Bag:
    """The rows with the wanted columns in their order."""
    places = [fields.index(physical) for physical in wanted]
    result: Bag = Counter()
    for values, weight in rows.items():
        result[tuple(values[i] for i in places)] += weight
    return result
