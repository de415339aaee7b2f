"""What is left of a difference once float results are allowed their tolerance."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import groupby, islice
from typing import Any

import pyarrow as pa

from headrace.types import Type

# Float sums depend on the order of their terms; both engines add in an order of their own.
TOLERANCE = {"double precision": 1e-9, "real": 1e-5}
# PostgreSQL gives a quotient at least 16 significant digits, and more of a small one.
DIGITS = Decimal(1).scaleb(-9)
RELATIVE_DIGITS = Decimal(1).scaleb(-15)
# More than all of these tolerances.
_REACH = "2e-5"
_BATCH = 10_000

Row = tuple[int, tuple[Any, ...]]
"""A weight, and the values of a row."""


def tolerance_of(types: Sequence[Type]) -> float | None:
    """Return the relative tolerance that applies to a result with these columns, if any does."""
    return max((TOLERANCE[_value(t).kind] for t in types if _value(t).is_float), default=None)


def _value(type_: Type) -> Type:
    """Return the type itself, or that of an array's elements."""
    return type_ if type_.element is None else type_.element


def weighted_rows(difference: pa.Table) -> list[Row]:
    """Return the rows of a table whose first column is the weight."""
    columns = [column.to_pylist() for column in difference.columns]
    return [(w, tuple(map(_hashable, values))) for w, *values in zip(*columns, strict=True)]


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def is_inexact(type_: Type, *, digits: bool) -> bool:
    """Return whether engines may differ in values: floats and, with `digits`, rounded numerics."""
    value = _value(type_)
    return value.is_float or (digits and bool(value.rounded))


def remaining(
    difference: pa.Table, types: Sequence[Type], *, digits: bool = False, most: int = 100_000
) -> list[Row] | None:
    """Return the weighted rows that have no partner on the other side within the tolerance.

    Rows pair up if they are equal in every exact column and close in every other. Return None if
    more than `most` rows have no partner, or are equal in every exact column.
    """
    left: list[Row] = []
    for group in _groups(difference, [is_inexact(type_, digits=digits) for type_ in types], most):
        left += group if len(group) > most else _unpaired(group, types)
        if len(left) > most:
            return None
    return left


def _groups(difference: pa.Table, inexact: Sequence[bool], most: int) -> Iterator[list[Row]]:
    """Yield the rows that are equal in every exact column; of a group at most `most` and one."""

    def exact(row: Row) -> tuple[Any, ...]:
        return tuple(value for value, some in zip(row[1], inexact, strict=True) if not some)

    names = difference.schema.names[1:]
    exact_names = [name for name, some in zip(names, inexact, strict=True) if not some]
    # Rows of one group are neighbours but for arrays, which have no order here.
    sortable = [n for n in exact_names if not pa.types.is_list(difference.schema.field(n).type)]
    if sortable:
        difference = difference.sort_by([(name, "ascending") for name in sortable])
    places = [names.index(name) for name in sortable]
    batches = (difference.slice(start, _BATCH) for start in range(0, len(difference), _BATCH))
    rows = (row for batch in batches for row in weighted_rows(batch))
    for _, neighbours in groupby(rows, key=lambda row: [row[1][place] for place in places]):
        together = list(islice(neighbours, most + 1))
        if len(together) > most:
            yield together
            continue
        groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in together:
            groups[exact(row)].append(row)
        yield from groups.values()


def _unpaired(rows: Sequence[Row], types: Sequence[Type]) -> list[Row]:
    missing = [(weight, values) for weight, values in rows if weight > 0]
    surplus = [(weight, values) for weight, values in rows if weight < 0]
    nearby = _Nearby([values for _, values in surplus], types)
    left = []
    for weight_missing, values in missing:
        unmatched = weight_missing
        for place in nearby.places(values):
            weight, others = surplus[place]
            if unmatched and weight and close(values, others, types):
                paired = min(unmatched, -weight)
                unmatched -= paired
                surplus[place] = (weight + paired, others)
        left.append((unmatched, values))
    return [row for row in left + surplus if row[0]]


class _Nearby:
    """Rows by the value of one inexact column, so that a row is compared with few others."""

    def __init__(self, rows: Sequence[tuple[Any, ...]], types: Sequence[Type]) -> None:
        inexact = [i for i, type_ in enumerate(types) if type_.is_float or type_.rounded]
        self._column = inexact[0] if inexact else None
        self._finite = [i for i, row in enumerate(rows) if self._value(row) is not None]
        self._finite.sort(key=lambda i: self._value(rows[i]))
        self._values = [self._value(rows[i]) for i in self._finite]
        self._others = [i for i, row in enumerate(rows) if self._value(row) is None]

    def _value(self, row: tuple[Any, ...]) -> Any:
        """Return the value, if it is a number with neighbours; else None."""
        value = None if self._column is None else row[self._column]
        return value if value is not None and math.isfinite(value) else None

    def places(self, row: tuple[Any, ...]) -> Sequence[int]:
        """Return the places of all rows that may be close to the row."""
        value = self._value(row)
        if value is None:
            return self._others
        reach = type(value)(_REACH) * max(abs(value), 1)
        low = bisect_left(self._values, value - reach)
        return self._finite[low : bisect_right(self._values, value + reach, low)]


def close(left: Sequence[Any], right: Sequence[Any], types: Sequence[Type]) -> bool:
    """Return whether two rows agree: exactly, or within the tolerance in float columns."""
    return all(_agree(a, b, t) for a, b, t in zip(left, right, types, strict=True))


def _agree(left: Any, right: Any, type_: Type) -> bool:
    if type_.element is not None and left is not None and right is not None:
        types = [type_.element] * len(left)
        return len(left) == len(right) and close(left, right, types)
    if left is None or right is None or not (type_.is_float or type_.rounded):
        return bool(left == right)
    if type_.rounded:
        return bool(abs(left - right) <= max(DIGITS, abs(left) * RELATIVE_DIGITS))
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=TOLERANCE[type_.kind])
