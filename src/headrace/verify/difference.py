"""What is left of a difference once float results are allowed their tolerance."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.types import Type

# Float sums depend on the order of their terms; both engines add in an order of their own.
TOLERANCE = {"double precision": 1e-9, "real": 1e-5}
# PostgreSQL gives a quotient at least 16 significant digits, and more of a small one.
DIGITS = Decimal(1).scaleb(-9)
RELATIVE_DIGITS = Decimal(1).scaleb(-15)


def tolerance_of(types: Sequence[Type]) -> float | None:
    """The relative tolerance that applies to a result with these columns, if any does."""
    return max((TOLERANCE[_value(t).kind] for t in types if _value(t).is_float), default=None)


def _value(type_: Type) -> Type:
    """The type itself, or that of an array's elements."""
    return type_ if type_.element is None else type_.element


def weighted_rows(difference: pa.Table) -> list[tuple[int, tuple[Any, ...]]]:
    """The rows of a table whose first column is the weight."""
    columns = [column.to_pylist() for column in difference.columns]
    return [(w, tuple(map(_hashable, values))) for w, *values in zip(*columns, strict=True)]


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def remaining(
    difference: pa.Table, types: Sequence[Type], *, digits: bool = False
) -> list[tuple[int, tuple[Any, ...]]]:
    """The weighted rows that have no partner on the other side within the tolerance.

    Rows pair up if they are equal in every exact column and close in every float column; with
    `digits`, also close in every numeric that is `rounded`, which each engine does in its own way.
    """
    rows = weighted_rows(difference)
    inexact = [_is_inexact(type_, digits) for type_ in types]
    if not any(inexact):
        return rows
    groups: dict[tuple[Any, ...], list[tuple[int, tuple[Any, ...]]]] = defaultdict(list)
    for weight, values in rows:
        exact = tuple(v for v, some in zip(values, inexact, strict=True) if not some)
        groups[exact].append((weight, values))
    return [row for group in groups.values() for row in _unpaired(group, types)]


def _is_inexact(type_: Type, digits: bool) -> bool:
    value = _value(type_)
    return value.is_float or (digits and bool(value.rounded))


def _unpaired(
    rows: list[tuple[int, tuple[Any, ...]]], types: Sequence[Type]
) -> list[tuple[int, tuple[Any, ...]]]:
    missing = [(weight, values) for weight, values in rows if weight > 0]
    surplus = [(weight, values) for weight, values in rows if weight < 0]
    left = []
    for weight_missing, values in missing:
        wanted = weight_missing
        for place, (weight, others) in enumerate(surplus):
            if wanted and weight and close(values, others, types):
                paired = min(wanted, -weight)
                wanted -= paired
                surplus[place] = (weight + paired, others)
        left.append((wanted, values))
    return [row for row in left + surplus if row[0]]


def close(left: Sequence[Any], right: Sequence[Any], types: Sequence[Type]) -> bool:
    """Whether two rows agree: exactly, or within the tolerance in float columns."""
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
