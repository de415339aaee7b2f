"""Plans over raw logs: rows are lists, and nothing but `Net` merges a row with its opposite.

The evaluator of `headrace.plan.evaluate` counts rows in bags, which nets them at every step. Spark
does not, so neither does this one: a rule that forgets to net sees rows that are long gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import localcontext

from headrace.algebra.scalar import Scalar, Value
from headrace.functions.numbers import WIDE
from headrace.plan.evaluate import Bag, Row, net, scalar
from headrace.plan.evaluate.evaluator import unnested
from headrace.plan.evaluate.groups import accumulated, merged
from headrace.plan.evaluate.partitions import merged_top, topped, windowed
from headrace.plan.operators import (
    Accumulate,
    Empty,
    Filter,
    FullJoin,
    Join,
    Merge,
    Negate,
    Net,
    Operator,
    OuterSemiAntiJoin,
    OuterSemiAntiJoinDelta,
    Project,
    Replicate,
    Restrict,
    Scan,
    Top,
    TopMerge,
    UnionAll,
    Unnest,
    Values,
    Window,
)

Weighted = tuple[tuple[Value, ...], int]
ReadRaw = Callable[[Scan], list[Weighted]]
Rows = list[tuple[Row, int]]


def evaluate_raw(plan: Operator, read: ReadRaw) -> list[Weighted]:
    """The plan's rows as its operators give them; `read` gives a scan's fields in their order."""
    with localcontext(WIDE):
        return RawEvaluator(read).weighted(plan)


def netted(rows: Iterable[Weighted]) -> list[Weighted]:
    """Equal rows as one, and none of weight zero."""
    return list(net(total(rows)).items())


def total(rows: Iterable[Weighted]) -> Bag:
    """The sum of the rows' weights, zeros included."""
    bag: Bag = Counter()
    for row, weight in rows:
        bag[row] += weight
    return bag


@dataclass(frozen=True)
class RawEvaluator:
    """The operators of a stage's change, each on the rows of its inputs as they come."""

    read: ReadRaw

    def weighted(self, plan: Operator) -> list[Weighted]:
        """The plan's rows as tuples of its columns."""
        match plan:
            case Scan():
                return self.read(plan)
            case Empty():
                return []
            case Values(rows=rows):
                return [(tuple(scalar(value, {}) for value in row), 1) for row in rows]
            case Project(child=child, outputs=outputs):
                return [
                    (tuple(scalar(value, row) for _, value in outputs), weight)
                    for row, weight in self.rows(child)
                ]
            case UnionAll(inputs=inputs):
                return [row for child in inputs for row in self.weighted(child)]
            case Negate(child=child):
                return [(row, -weight) for row, weight in self.weighted(child)]
            case Net(child=child):
                return netted(self.weighted(child))
            case FullJoin():
                return self.weighted(plan.divided())
            case OuterSemiAntiJoinDelta():
                return self.weighted(plan.written_out())
            case Window(child=child):
                return list(windowed(plan, self.rows(child)).items())
            case Top(child=child):
                return list(topped(plan, self.rows(child)).items())
            case TopMerge(stored=stored, change=change):
                return list(merged_top(plan, self.rows(stored), self.rows(change)).items())
            case Accumulate(child=child, state=state):
                return list(accumulated(state, self.rows(child), scalar).items())
            case Merge():
                return self._merged(plan)
            case _:
                columns = plan.columns
                return [(tuple(row[c] for c in columns), weight) for row, weight in self._by(plan)]

    def rows(self, plan: Operator) -> Rows:
        """The plan's rows by their columns."""
        columns = plan.columns
        return [(dict(zip(columns, row, strict=True)), w) for row, w in self.weighted(plan)]

    def _by(self, plan: Operator) -> Rows:
        """Operators that keep, repeat or pair the rows of their inputs."""
        match plan:
            case Filter(child=child, condition=condition):
                return [(row, w) for row, w in self.rows(child) if _holds(condition, row)]
            case Replicate(child=child, times=times):
                return [(row, w * _number(times, row)) for row, w in self.rows(child)]
            case Unnest(child=child):
                return list(unnested(plan, self.rows(child), scalar))
            case Join(left=left, right=right, condition=condition):
                rights = self.rows(right)
                pairs = [({**a, **b}, v * w) for a, v in self.rows(left) for b, w in rights]
                return [(pair, w) for pair, w in pairs if _holds(condition, pair)]
            case OuterSemiAntiJoin():
                return self._matched(plan)
            case Restrict(child=child, touched=touched, keys=keys):
                seen = {tuple(row[found] for _, found in keys) for row, _ in self.rows(touched)}
                kept = [key for key, _ in keys]
                return [
                    (r, w) for r, w in self.rows(child) if tuple(r[key] for key in kept) in seen
                ]
        raise TypeError(f"no definition of {type(plan).__name__}")

    def _matched(self, plan: OuterSemiAntiJoin) -> Rows:
        rights = self.rows(plan.right)
        nothing = dict.fromkeys(plan.right.columns)
        found: Rows = []
        for row, weight in self.rows(plan.left):
            pairs = [({**row, **other}, weight * w) for other, w in rights]
            matches = [(pair, w) for pair, w in pairs if _holds(plan.condition, pair)]
            if plan.kind == "left":
                found += matches or [({**row, **nothing}, weight)]
            elif bool(matches) == (plan.kind == "semi"):
                found.append((row, weight))
        return found

    def _merged(self, plan: Merge) -> list[Weighted]:
        """Sums of old states are states, so they may be stored raw; extrema cannot be summed."""
        stored = self.weighted(plan.stored)
        if plan.state.extrema:
            assert all(weight == 1 for _, weight in stored), "extrema of states that are gone"
        old = net(total(stored))
        return list(merged(plan, old, self.rows(plan.change), scalar).items())


def _holds(condition: Scalar | None, row: Row) -> bool:
    return condition is None or scalar(condition, row) is True


def _number(times: Scalar, row: Row) -> int:
    value = scalar(times, row)
    assert isinstance(value, int) and value >= 0
    return value
