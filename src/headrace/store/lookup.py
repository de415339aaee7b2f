"""The rows of a Parquet file with certain keys, read without the others.

Statistics of row groups rule out those that cannot hold a key. A file that is sorted by the key has
few candidates, any other file has more. Missing statistics rule out nothing. Statistics of long
texts may be truncated: their least value is then too small and their greatest too great, which
rules out less and never too much.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from sys import getsizeof
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from headrace.store.keys import Keys, Mask, Numbers
from headrace.store.layout import weighted
from headrace.store.location import StoreLocation

# Comparing more keys with row groups, column by column, costs more than it saves.
MOST_COMPARED = 20_000_000
# Floats are left out: NaN and -0.0 are not where the statistics have them.
BYTES = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})
COMPARED = BYTES | {"BOOLEAN", "INT32", "INT64"}


@dataclass(frozen=True, eq=False)
class RowGroupBounds:
    """A column's values in each row group: all from `low` to `high`, where `has_bounds`.

    A group has NULLs only where `nulls`, and other values only where `values`.
    """

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    has_bounds: Mask
    values: Mask
    nulls: Mask

    @classmethod
    def of(cls, metadata: pq.FileMetaData, place: int) -> RowGroupBounds | None:
        """Return the bounds of a column; None if its values compare unlike its statistics."""
        column = metadata.schema.column(place)
        if column.physical_type not in COMPARED:
            return None
        is_text = column.physical_type in BYTES and column.logical_type.type != "DECIMAL"
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        statistics = [group.column(place).statistics for group in groups]
        has_bounds = np.array(
            [
                group_statistics is not None and group_statistics.has_min_max
                for group_statistics in statistics
            ],
            np.bool_,
        )
        low, high = np.zeros(len(groups), object), np.zeros(len(groups), object)
        for number in np.flatnonzero(has_bounds):
            ends = statistics[number].min_raw, statistics[number].max_raw
            low[number], high[number] = ends if is_text else map(_whole, ends)
        nulls = [None if e is None or not e.has_null_count else e.null_count for e in statistics]
        values = [n is None or n < group.num_rows for n, group in zip(nulls, groups, strict=True)]
        some_nulls = [number != 0 for number in nulls]
        return cls(
            low, high, has_bounds, np.array(values, np.bool_), np.array(some_nulls, np.bool_)
        )


@dataclass(frozen=True, eq=False)
class Footer:
    """The row counts of a file's row groups, and the bounds of some columns."""

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
        """Return about how many bytes of memory the footer takes."""
        ends = (end for each in self.bounds.values() if each for end in (each.low, each.high))
        return self.rows.nbytes + sum(getsizeof(value) for end in ends for value in end)


def _whole(raw: bytes | int) -> int:
    """Return a number of the statistics; a long decimal comes as bytes."""
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)


def may_match(footer: Footer, keys: Keys) -> Mask:
    """Return which row groups may hold a row with one of the keys.

    The footer must have the bounds of the keys' columns.
    """
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
    """The values of a key's column within the bounds of each row group: first to end.

    `places` has the position of each key's value among all values, `order` the keys by position.
    NULL has position -1 and is looked for in row groups with `nulls`.
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
        has_bounds = bounds.has_bounds
        low, high = (ends[has_bounds].astype(values.dtype) for ends in (bounds.low, bounds.high))
        first, end = np.zeros(len(has_bounds), np.int64), np.where(bounds.values, len(values), 0)
        first[has_bounds] = np.searchsorted(values, low)
        end[has_bounds] = np.searchsorted(values, high, side="right")
        return cls(first, end, bounds.nulls & bool((places < 0).any()), places, order)


def _narrow(possible: Mask, spans: list[_Span]) -> None:
    """Keep only row groups in which some key is within the bounds of all its columns."""
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


BATCH_ROWS = 65_536

By = Literal["best", "index", "pruned", "scan"]


class LookupCost(NamedTuple):
    """How many stored rows a lookup compares with the keys, and whether it uses an index."""

    rows: int
    indexed: bool = False


def read_columns(place: StoreLocation, uri: str, names: Collection[str]) -> pa.Table:
    """Return some columns of all rows of a file."""
    with place.files.open_input_file(place.path(uri)) as source:
        return pq.ParquetFile(source).read([*names])


def read_footer(files: pafs.FileSystem, path: str, names: Iterable[str]) -> Footer:
    """Return a file's footer with the bounds of these columns."""
    with files.open_input_file(path) as source:
        return Footer.of(pq.ParquetFile(source).metadata, names)


def read_matching(
    files: pafs.FileSystem,
    path: str,
    footer: Footer,
    groups: Mask,
    columns: pa.Schema,
    keys: Keys,
    most: int | None = None,
) -> pa.Table:
    """Return the weighted rows of some row groups whose key is in the set.

    A result of more than `most` rows is not complete. The columns of the key are read first, and
    nothing else of row groups without a match. Without row groups the file is not even opened.
    """
    schema = weighted(columns)
    tables, count = [schema.empty_table()], 0
    if not groups.any():
        return tables[0]
    key = pa.schema([schema.field(name) for name in keys.names])
    with files.open_input_file(path) as source:
        part = pq.ParquetFile(source)
        for together in _together(np.flatnonzero(groups).tolist(), footer):
            compared = part.read_row_groups(together, key.names).select(key.names).cast(key)
            sizes = footer.rows[together]
            has = np.split(keys.has(compared), np.cumsum(sizes)[:-1])
            chosen = [
                group for group, group_mask in zip(together, has, strict=True) if group_mask.any()
            ]
            matches = np.concatenate(
                [np.zeros(0, np.bool_), *(group_mask for group_mask in has if group_mask.any())]
            )
            start = 0
            for batch in part.iter_batches(BATCH_ROWS, chosen, schema.names) if chosen else ():
                here = matches[start : start + batch.num_rows]
                start += batch.num_rows
                if here.any():
                    rows = pa.Table.from_batches([batch.filter(pa.array(here))])
                    tables.append(rows.select(schema.names).cast(schema))
                    count += rows.num_rows
                if most is not None and count > most:
                    return pa.concat_tables(tables)
    return pa.concat_tables(tables)


def _together(groups: list[int], footer: Footer) -> Iterator[list[int]]:
    """Yield row groups whose keys are read at once: those with the rows of a batch, or one."""
    run: list[int] = []
    rows = 0
    for group in groups:
        rows += int(footer.rows[group])
        if run and rows > BATCH_ROWS:
            yield run
            run, rows = [], int(footer.rows[group])
        run.append(group)
    yield run
