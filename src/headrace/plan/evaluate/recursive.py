"""Recursive by its definition: level after level, until the step gives no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from headrace.algebra.scalar import Value
from headrace.functions.function import EvaluationError
from headrace.plan.operators import Operator, Recursive, Scan

Bag = Counter[tuple[Value, ...]]
Read = Callable[[Scan], Bag]

MAXIMUM_LEVELS = 10_000


def levels(plan: Recursive, read: Read, evaluate: Callable[[Operator, Read], Bag]) -> Bag:
    """The sum of all levels."""
    total: Bag = Counter()
    level = _next(plan, evaluate(plan.base, read), total)
    for _ in range(MAXIMUM_LEVELS):
        total.update(level)
        level = _next(plan, evaluate(plan.step, _reading(plan.variable, level, read)), total)
        if not level:
            return total
    raise EvaluationError(f"a recursive query has more than {MAXIMUM_LEVELS} levels")


def _next(plan: Recursive, found: Bag, total: Bag) -> Bag:
    """The rows that make a level of what was found."""
    if plan.once:
        return Counter(row for row, weight in found.items() if weight > 0 and row not in total)
    return Counter({row: weight for row, weight in found.items() if weight})


def _reading(variable: str, level: Bag, outside: Read) -> Read:
    """Scans of the variable give the level's rows, the others what they gave before."""

    def read(scan: Scan) -> Bag:
        if scan.relation != variable:
            return outside(scan)
        places = [int(physical.removeprefix("c")) - 1 for physical, _ in scan.fields]
        bag: Bag = Counter()
        for row, weight in level.items():
            bag[tuple(row[place] for place in places)] += weight
        return bag

    return read
