"""Rows of a log kept apart by a column: files of few values each, which say between which they lie.

Whoever reads the Delta table for one value can leave out the files of others by the statistics of
the commit, Spark by those in the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.errors import InternalError
from headrace.store.arrangement import Arrangement
from headrace.store.compaction import SMALL_ROWS
from headrace.store.layout import sorted_by

# Statistics are read with the log: what is longer than that is not worth its place there.
LONGEST = 256


@dataclass(frozen=True)
class FileBounds:
    """The least and the greatest value of a column in a file, if known, and how many are NULL."""

    column: str
    least: Any
    greatest: Any
    nulls: int

    def statistics(self) -> dict[str, dict[str, Any]]:
        """The part of a Delta file's statistics that tells of the column."""
        found: dict[str, dict[str, Any]] = {"nullCount": {self.column: self.nulls}}
        if _is_told(self.least) and _is_told(self.greatest):
            found["minValues"] = {self.column: _told(self.least)}
            found["maxValues"] = {self.column: _told(self.greatest)}
        return found


def check_apart(columns: pa.Schema, apart: str | None) -> None:
    """Refuse a column that is not there, or of which files could not tell bounds: a bug."""
    if apart is None:
        return
    kind = columns.field(apart).type if apart in columns.names else None
    exact = (
        *(pa.types.is_integer, pa.types.is_boolean, pa.types.is_string),
        *(pa.types.is_date32, pa.types.is_timestamp),
    )
    if kind is None or not any(test(kind) for test in exact):
        raise InternalError("invariant", f"rows cannot be kept apart by {apart!r}")


def kept_apart(rows: pa.Table, arrangement: Arrangement) -> Iterator[pa.Table]:
    """The rows, sorted, as tables to be written as files.

    Of the column that they are kept apart by no value is in two, and only the last is small. NULL
    is a value like others. At least one table is given, of no rows if there are none.
    """
    apart = arrangement.apart
    if apart is None:
        yield sorted_by(rows, arrangement.order)
        return
    rows = rows.sort_by([(name, "ascending") for name in arrangement.columns])
    start = 0
    for end in _ends(rows[apart]):
        if end - start >= SMALL_ROWS:
            yield rows.slice(start, end - start)
            start = end
    if start < rows.num_rows or not rows.num_rows:
        yield rows.slice(start)


def _ends(values: pa.ChunkedArray) -> list[int]:
    """Where, in sorted values, each of them ends."""
    runs = pc.run_end_encode(values.combine_chunks(), run_end_type=pa.int64())
    ends: list[int] = runs.run_ends.to_pylist()
    return ends


def bounds_of(rows: pa.Table, apart: str | None) -> FileBounds | None:
    """The bounds of rows in memory."""
    if apart is None:
        return None
    found = pc.min_max(rows[apart]).as_py()
    return FileBounds(apart, found["min"], found["max"], rows[apart].null_count)


def bounds_in(footer: pq.FileMetaData, apart: str | None) -> FileBounds | None:
    """The bounds of a file, by the statistics in its footer; None where these do not tell all."""
    if apart is None:
        return None
    place = footer.schema.names.index(apart)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    least, greatest, nulls = [], [], 0
    for group in groups:
        found = group.column(place).statistics
        if found is None or not found.has_null_count:
            return None
        nulls += found.null_count
        if found.null_count == group.num_rows:
            continue
        if not found.has_min_max:
            return None
        least.append(found.min)
        greatest.append(found.max)
    return FileBounds(apart, min(least, default=None), max(greatest, default=None), nulls)


def _is_told(value: Any) -> bool:
    """Whether Delta has statistics of such a value: of truth values it has none.

    It has some of times, but only to the millisecond.
    """
    if value is None or isinstance(value, bool | datetime):
        return False
    return not isinstance(value, str) or len(value) <= LONGEST


def _told(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
