"""Windows and tops by their definition: every copy of a row has a place in its partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.algebra.scalar import Column, Value
from headrace.functions import order_key
from headrace.functions.windows import WINDOW_FUNCTION_BY_NAME, Seen
from headrace.plan.evaluate.frames import framed
from headrace.plan.operators import SortKey, Top, TopMerge, Window, WindowCall

Bag = Counter[tuple[Value, ...]]
Row = Mapping[Column, Value]
Rows = list[tuple[Row, int]]


def windowed(plan: Window, rows: Rows) -> Bag:
    """Return every row with the results of the calls."""
    bag: Bag = Counter()
    for members in _partitions(rows, plan.keys):
        results: list[list[Value]] = [[] for _ in members]
        for call in plan.calls:
            for place, value in _called(call, members):
                results[place].append(value)
        for row, values in zip(members, results, strict=True):
            bag[(*(row[column] for column in plan.child.columns), *values)] += 1
    return bag


def topped(plan: Top, rows: Rows) -> Bag:
    """Return the rows that are taken of every group."""
    bag: Bag = Counter()
    for members in _partitions(rows, plan.keys):
        for row in _first(plan, members)[plan.offset :]:
            bag[tuple(row[column] for column in plan.columns)] += 1
    return bag


def _first(plan: Top | TopMerge, members: Sequence[Row]) -> list[Row]:
    """Return the rows up to the last one that is taken."""
    ordered = sorted_rows(members, (*plan.order, *plan.ties))
    offset = plan.offset if isinstance(plan, Top) else 0
    end = len(ordered) if plan.limit is None else min(offset + plan.limit, len(ordered))
    while plan.with_ties and plan.limit and offset < end < len(ordered):
        if _standing(ordered[end], plan.order) != _standing(ordered[end - 1], plan.order):
            break
        end += 1
    return ordered[:end]


def merged_top(plan: TopMerge, stored: Rows, change: Rows) -> Bag:
    """Return the change of every group's first rows, by the table in `plan/operators/top.py`."""
    columns = plan.stored.columns
    assert not plan.grows or all(weight > 0 for _, weight in change), "what grows loses nothing"
    known_mark = () if plan.grows else (False,)
    bag: Bag = Counter()
    for before, changed in _grouped(plan.keys, stored, change):
        stored_copies = [row for row, weight in before for _ in range(weight)]
        stored_rows = Counter({tuple(row.values()): weight for row, weight in before})
        full = len(stored_copies) >= plan.limit
        order = plan.order if plan.with_ties else (*plan.order, *plan.ties)
        last = sorted_rows(stored_copies, (*plan.order, *plan.ties))[-1] if full else None
        for row, weight in changed:
            if last is None or sorted_rows([row, last], order)[0] is row:
                stored_rows[tuple(row.values())] += weight
        if full and sum(stored_rows.values()) < plan.limit:
            for row, weight in before:
                bag[(*(row[column] for column in columns), True)] -= weight
            continue
        rows = [dict(zip(columns, values, strict=True)) for values in stored_rows.elements()]
        for row in stored_copies:
            bag[(*(row[column] for column in columns), *known_mark)] -= 1
        for row_ in _first(plan, rows):
            bag[(*(row_[column] for column in columns), *known_mark)] += 1
    return Counter({row: weight for row, weight in bag.items() if weight})


def _grouped(keys: tuple[Column, ...], *sides: Rows) -> list[tuple[Rows, ...]]:
    """Return the rows of both sides for every key that either has."""
    groups: dict[tuple[Any, ...], tuple[Rows, ...]] = {}
    for side, rows in enumerate(sides):
        for row, weight in rows:
            key = tuple(_key(row[column]) for column in keys)
            groups.setdefault(key, tuple([] for _ in sides))[side].append((row, weight))
    return list(groups.values())


def _partitions(rows: Rows, keys: tuple[Column, ...]) -> list[list[Row]]:
    """Return the rows of each partition, every copy by itself."""
    partitions: dict[tuple[Any, ...], list[Row]] = {}
    for row, weight in rows:
        assert weight > 0, "a window is over rows that are there"
        members = partitions.setdefault(tuple(_key(row[key]) for key in keys), [])
        members.extend([row] * weight)
    return list(partitions.values())


def _called(call: WindowCall, members: Sequence[Row]) -> list[tuple[int, Value]]:
    """Return the call's value for every member, by the member's place."""
    indexed = [{**row, _PLACE: place} for place, row in enumerate(members)]
    ordered = sorted_rows(indexed, (*call.order, *call.ties))
    standings = [_standing(row, call.order) for row in ordered]
    groups: list[int] = []
    for i, standing in enumerate(standings):
        groups.append(groups[-1] + (standing != standings[i - 1]) if i else 0)
    arguments = [tuple(row[argument] for argument in call.arguments) for row in ordered]
    function = WINDOW_FUNCTION_BY_NAME[call.function]
    values: list[tuple[int, Value]] = []
    for i, row in enumerate(ordered):
        frame = () if call.frame is None else framed(call.frame, i, groups, ordered, call.order)
        view = Seen(i, groups, arguments, frame, call.number, call.output.type)
        place = row[_PLACE]
        assert isinstance(place, int)
        values.append((place, function.evaluate(view)))
    return values


_PLACE: Any = object()


def sorted_rows(rows: Sequence[Row], order: Sequence[SortKey]) -> list[Row]:
    """Return the rows in the order, equal ones as they came."""
    ordered = list(rows)
    for key in reversed(order):
        ordered.sort(
            key=lambda row, key=key: _sort_key(row[key.column], key),  # type: ignore[misc]
            reverse=key.descending,
        )
    return ordered


def _sort_key(value: Value, key: SortKey) -> tuple[bool, Any]:
    if value is None:
        return (key.nulls_first == key.descending, 0)
    return (key.nulls_first != key.descending, order_key(value))


def _standing(row: Row, order: Sequence[SortKey]) -> tuple[Any, ...]:
    return tuple(_key(row[key.column]) for key in order)


def _key(value: Value) -> Any:
    """Return a key that is equal for values that PostgreSQL takes as the same, NULLs included."""
    return None if value is None else (order_key(value),)
