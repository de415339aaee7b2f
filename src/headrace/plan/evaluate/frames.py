"""Frames by their definition: which rows of a sorted partition a call sees for one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, time
from typing import Any

from headrace.algebra.scalar import Column, Value
from headrace.functions import FUNCTION_BY_NAME, order_key
from headrace.plan.operators import Frame, FrameBound, SortKey

Row = Mapping[Column, Value]


def framed(
    frame: Frame, place: int, groups: Sequence[int], rows: Sequence[Row], order: Sequence[SortKey]
) -> list[int]:
    """Return the places that the frame of the row at `place` has, in order.

    `groups` numbers the peers: equal numbers are peers of each other.
    """
    if frame.mode == "range" and any(b.offset is not None for b in (frame.start, frame.end)):
        (key,) = order
        values = [row[key.column] for row in rows]
        inside = [
            i
            for i in range(len(rows))
            if _not_before(frame.start, i, place, groups, values, key)
            and _not_after(frame.end, i, place, groups, values, key)
        ]
    else:
        numbers: Sequence[int] = range(len(rows)) if frame.mode == "rows" else groups
        low, high = (_number(bound, numbers[place]) for bound in (frame.start, frame.end))
        inside = [
            i
            for i, number in enumerate(numbers)
            if (low is None or number >= low) and (high is None or number <= high)
        ]
    return [i for i in inside if not _excluded(frame, i, place, groups)]


def _number(bound: FrameBound, own: int) -> int | None:
    """Return the first or last number inside; None for no bound."""
    offset = 0 if bound.offset is None else bound.offset.value
    assert isinstance(offset, int)
    match bound.kind:
        case "preceding":
            return own - offset
        case "following":
            return own + offset
        case "current row":
            return own
        case _:
            return None


def _excluded(frame: Frame, i: int, place: int, groups: Sequence[int]) -> bool:
    match frame.exclude:
        case "current row":
            return i == place
        case "group":
            return groups[i] == groups[place]
        case "ties":
            return i != place and groups[i] == groups[place]
        case _:
            return False


def _not_before(
    start: FrameBound,
    i: int,
    place: int,
    groups: Sequence[int],
    values: Sequence[Value],
    key: SortKey,
) -> bool:
    """Return whether the row at `i` is not before the frame's start."""
    if start.kind == "unbounded preceding":
        return True
    if start.offset is None or values[i] is None or values[place] is None:
        return groups[i] >= groups[place]
    limit, value = _limit(start, values[place], key), _moment(values[i], start)
    return bool(value <= limit if key.descending else value >= limit)


def _not_after(
    end: FrameBound,
    i: int,
    place: int,
    groups: Sequence[int],
    values: Sequence[Value],
    key: SortKey,
) -> bool:
    if end.kind == "unbounded following":
        return True
    if end.offset is None or values[i] is None or values[place] is None:
        return groups[i] <= groups[place]
    limit, value = _limit(end, values[place], key), _moment(values[i], end)
    return bool(value >= limit if key.descending else value <= limit)


def _limit(bound: FrameBound, own: Any, key: SortKey) -> Any:
    """Return the value at the bound's distance from the row's own."""
    assert bound.offset is not None
    sign = "+" if (bound.kind == "following") != key.descending else "-"
    name = f"moment {sign}" if bound.offset.type.kind == "interval" else sign
    return order_key(FUNCTION_BY_NAME[name].evaluate(own, bound.offset.value))


def _moment(value: Any, bound: FrameBound) -> Any:
    """Return the key that orders a value; a date moved by an interval counts as a timestamp."""
    assert bound.offset is not None
    if bound.offset.type.kind == "interval" and not isinstance(value, datetime):
        return datetime.combine(value, time())
    return order_key(value)
