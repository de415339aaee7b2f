"""EXCEPT and INTERSECT by their definition, on the counts of equal rows."""

from __future__ import annotations

from collections import Counter

from headrace.algebra.scalar import Value
from headrace.plan.set_operation import SetOperation

Bag = Counter[tuple[Value, ...]]


def combined(plan: SetOperation, left: Bag, right: Bag) -> Bag:
    """The operation on two bags; a row without a positive weight is not there."""
    # Counters leave out what is not positive: & is the lesser, − the difference.
    if not plan.once:
        return left & right if plan.kind == "intersect" else +left - +right
    wanted = plan.kind == "intersect"
    return Counter(dict.fromkeys((row for row in +left if (right[row] > 0) == wanted), 1))
