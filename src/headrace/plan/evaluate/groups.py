"""Groups by their definition: aggregates of values, and states that changes are added to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from headrace.algebra.scalar import Column, Scalar, Value
from headrace.functions import AGGREGATE_BY_NAME, fitted, order_key
from headrace.plan.evaluate.partitions import sorted_rows
from headrace.plan.operators import Aggregate, AggregateCall, Extremum, GroupState, Merge

Bag = Counter[tuple[Value, ...]]
Row = Mapping[Column, Value]
Rows = list[tuple[Row, int]]
Evaluate = Callable[[Scalar, Row], Value]


def _groups(rows: Rows, keys: tuple[Column, ...]) -> dict[tuple[Value, ...], Rows]:
    groups: dict[tuple[Value, ...], Rows] = {}
    if not keys:
        groups[()] = []
    for row, weight in rows:
        groups.setdefault(tuple(_shown(row[key]) for key in keys), []).append((row, weight))
    return groups


def _shown(value: Value) -> Value:
    """Return the value that stands for all that equal it: zero without a sign, one NaN."""
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if not isinstance(value, float):
        return value
    return math.nan if math.isnan(value) else value + 0.0


def aggregated(plan: Aggregate, rows_: Rows) -> Bag:
    """Return the row of every group, from its values, each as often as it occurs."""
    bag: Bag = Counter()
    for key, rows in _groups(rows_, plan.keys).items():
        bag[(*key, *(_called(call, rows) for call in plan.calls))] += 1
    return bag


def _called(call: AggregateCall, rows: Rows) -> Value:
    """Return the value of a call over all rows of a group."""
    function = AGGREGATE_BY_NAME[call.function]
    assert all(weight > 0 for _, weight in rows), "an aggregate is over rows that are there"
    members = [row for row, weight in rows for _ in range(weight)]
    if call.only is not None:
        members = [row for row in members if row[call.only] is True]
    inputs: list[tuple[Value, ...]] = []
    distinct_values: set[tuple[Any, ...]] = set()
    for row in sorted_rows(members, call.order):
        values = tuple(_shown(row[argument]) for argument in call.arguments)
        if any(value is None for value in values[: function.needed]):
            continue
        if call.distinct and values in distinct_values:
            continue
        distinct_values.add(values)
        inputs.append(values)
    return function.evaluate(inputs, call.output.type)


def accumulated(state: GroupState, rows: Rows, evaluate: Evaluate) -> Bag:
    """Return the state row of every group; `evaluate` gives a term's value on one row."""
    return Counter(dict.fromkeys(_states(rows, state, evaluate).values(), 1))


def _states(
    rows: Rows, state: GroupState, evaluate: Evaluate
) -> dict[tuple[Value, ...], tuple[Value, ...]]:
    """Return the state row of each key; no row for an empty group, except the one without key."""
    result = {}
    for key, members in _groups(rows, _key(state)).items():
        count = sum(weight for _, weight in members)
        sums = _sums(members, state, evaluate)
        if count or not state.keys:
            extrema = [_best(each, members, evaluate) for each in state.extrema]
            calls = [_called(call, members) for call in state.calls]
            result[key] = (*key, count, *sums, *extrema, *calls)
    return result


def _best(extremum: Extremum, members: Rows, evaluate: Evaluate, sign: int = 1) -> Value:
    """Return the extremum over the rows whose weight has the sign."""
    values = [evaluate(extremum.term, row) for row, weight in members if weight * sign > 0]
    return _better(extremum, *values)


def _better(extremum: Extremum, *values: Value) -> Value:
    present = [value for value in values if value is not None]
    choose = min if extremum.kept == "min" else max
    return choose(present, key=order_key) if present else None


def _key(state: GroupState) -> tuple[Column, ...]:
    return tuple(key for _, key in state.keys)


def _sums(members: Rows, state: GroupState, evaluate: Evaluate) -> list[Value]:
    sums = []
    for column, term in state.sums:
        terms: list[Any] = [evaluate(term, row) for row, _ in members]
        weighted = (weight * value for (_, weight), value in zip(members, terms, strict=True))
        sums.append(fitted(sum(weighted, _zero(column)), column.type))
    return sums


def _zero(column: Column) -> Any:
    if column.type.is_float:
        return 0.0
    return 0 if column.type.is_integer else Decimal(0)


def merged(plan: Merge, stored: Bag, change: Rows, evaluate: Evaluate) -> Bag:
    """Return the state rows −old +new of every group that a change touches."""
    state = plan.state
    assert not plan.grows or all(weight > 0 for _, weight in change), "what grows loses nothing"
    width = len(state.keys)
    old = {row[:width]: row for row in stored}
    nothing: tuple[Any, ...] = (0, *(_zero(column) for column, _ in state.sums))
    nothing += (None,) * len(state.extrema)
    bag: Bag = Counter()
    for key, members in _groups(change, _key(state)).items():
        before = old.get(key)
        previous = nothing if before is None else before[width:]
        added: list[Any] = [sum(weight for _, weight in members), *_sums(members, state, evaluate)]
        totals = [a + b for a, b in zip(previous, added, strict=False)]
        present = dict(zip(state.totals, totals, strict=True))
        bests = [
            _merged(each, value, members, evaluate, left=bool(present[each.present]))
            for each, value in zip(state.extrema, previous[len(totals) :], strict=True)
        ]
        stays = bool(totals[0]) or not state.keys
        stale = stays and any(is_stale for _, is_stale in bests)
        mark = (stale,) if state.extrema and not plan.grows else ()
        if before is not None:
            bag[(*before, *mark)] -= 1
        if stays:
            bag[(*key, *totals, *(best for best, _ in bests), *mark)] += 1
    return bag


def _merged(
    extremum: Extremum, old: Value, members: Rows, evaluate: Evaluate, *, left: bool
) -> tuple[Value, bool]:
    """Return the new extremum, and whether it is unknown.

    `left` says whether some value is left.
    """
    inserted, deleted = _best(extremum, members, evaluate), _best(extremum, members, evaluate, -1)
    if not left:
        return None, False
    if not _as_good(extremum, deleted, old):
        return _better(extremum, old, inserted), False
    if _as_good(extremum, inserted, old):
        return inserted, False
    return None, True


def _as_good(extremum: Extremum, value: Value, old: Value) -> bool:
    best = _better(extremum, value, old)
    return value is not None and bool(order_key(best) == order_key(value))
