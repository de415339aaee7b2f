"""Row groups that may hold a key, by the least and the greatest value of each of its columns.

A file that is sorted by the key has few of them for a key; in any other file they are only more.
What statistics do not say is possible. Those of a long text may be cut off: the least is then too
small and the greatest too great, which rules out less and never too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from sys import getsizeof
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from headrace.store.keys import Keys, Mask, Numbers

# Comparing more keys with row groups, column by column, costs more than it spares.
MOST_COMPARED = 20_000_000
# Floats are left out: NaN and -0.0 are not where the statistics have them.
BYTES = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})
COMPARED = BYTES | {"BOOLEAN", "INT32", "INT64"}


@dataclass(frozen=True, eq=False)
class RowGroupBounds:
    """A column's values in each row group: all from `low` to `high`, where these are `known`.

    A group has NULLs only where `nulls`, and other values only where `values`.
    """

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    known: Mask
    values: Mask
    nulls: Mask

    @classmethod
    def of(cls, metadata: pq.FileMetaData, place: int) -> RowGroupBounds | None:
        """The bounds of a column, if its values are compared as its statistics are."""
        column = metadata.schema.column(place)
        if column.physical_type not in COMPARED:
            return None
        is_text = column.physical_type in BYTES and column.logical_type.type != "DECIMAL"
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        found = [group.column(place).statistics for group in groups]
        known = np.array([each is not None and each.has_min_max for each in found], np.bool_)
        low, high = np.zeros(len(groups), object), np.zeros(len(groups), object)
        for number in np.flatnonzero(known):
            ends = found[number].min_raw, found[number].max_raw
            low[number], high[number] = ends if is_text else map(_whole, ends)
        nulls = [None if e is None or not e.has_null_count else e.null_count for e in found]
        values = [n is None or n < group.num_rows for n, group in zip(nulls, groups, strict=True)]
        some_nulls = [number != 0 for number in nulls]
        return cls(low, high, known, np.array(values, np.bool_), np.array(some_nulls, np.bool_))


@dataclass(frozen=True, eq=False)
class Footer:
    """What a file says of its row groups: their rows, and the bounds of some columns."""

    rows: Numbers
    bounds: Mapping[str, RowGroupBounds | None]

    @classmethod
    def of(cls, metadata: pq.FileMetaData, names: Iterable[str]) -> Footer:
        places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
        groups = range(metadata.num_row_groups)
        return cls(
            np.array([metadata.row_group(number).num_rows for number in groups], np.int64),
            {n: RowGroupBounds.of(metadata, places[n]) if n in places else None for n in names},
        )

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        ends = (end for each in self.bounds.values() if each for end in (each.low, each.high))
        return self.rows.nbytes + sum(getsizeof(value) for end in ends for value in end)


def _whole(raw: bytes | int) -> int:
    """A number as statistics have it; a long decimal is in bytes."""
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)


def may_match(footer: Footer, keys: Keys) -> Mask:
    """Which row groups may hold a row with one of the keys; their bounds must be in the footer."""
    spans = [span for name in keys.names if (span := _Span.of(footer, keys, name)) is not None]
    possible = footer.rows > 0
    if not len(keys):
        return np.zeros_like(possible)
    for span in spans:
        possible &= (span.first < span.end) | span.nulls
    if len(spans) > 1:
        _narrow(possible, spans)
    return possible


@dataclass(frozen=True, eq=False)
class _Span:
    """Which values of a key's column are in the bounds of each row group: first to end.

    `places` has the place of each key's value among all of them, `order` the keys by that. NULL is
    at place -1, and wanted in row groups with `nulls`.
    """

    first: Numbers
    end: Numbers
    nulls: Mask
    places: Numbers
    order: Numbers

    @classmethod
    def of(cls, footer: Footer, keys: Keys, name: str) -> _Span | None:
        bounds, column = footer.bounds[name], keys.ordered(name)
        if bounds is None or column is None:
            return None
        values, places, order = column
        known = bounds.known
        low, high = (ends[known].astype(values.dtype) for ends in (bounds.low, bounds.high))
        first, end = np.zeros(len(known), np.int64), np.where(bounds.values, len(values), 0)
        first[known] = np.searchsorted(values, low)
        end[known] = np.searchsorted(values, high, side="right")
        return cls(first, end, bounds.nulls & bool((places < 0).any()), places, order)


def _narrow(possible: Mask, spans: list[_Span]) -> None:
    """Leave only row groups in which one key is within the bounds of all its columns."""
    leading = min(spans, key=lambda span: int((span.end - span.first).sum()))
    places = leading.places[leading.order]
    starts, ends = (np.searchsorted(places, edge) for edge in (leading.first, leading.end))
    missing = int(np.searchsorted(places, 0))
    if int((ends - starts)[possible].sum()) > MOST_COMPARED:
        return
    for group in np.flatnonzero(possible):
        within = leading.order[starts[group] : ends[group]]
        if leading.nulls[group]:
            within = np.concatenate([within, leading.order[:missing]])
        for span in spans:
            place = span.places[within]
            inside = (place >= span.first[group]) & (place < span.end[group])
            within = within[inside | (span.nulls[group] & (place < 0))]
        possible[group] = len(within) > 0
