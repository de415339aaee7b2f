"""Files of a log as actions of a Delta commit, with the bounds of one column as statistics.

A reader of the Delta table skips files by these statistics, Spark by those in the Parquet footers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction, RemoveAction

from headrace.store.layout import EPOCH, WEIGHT
from headrace.store.log import LogFile

# Longer texts are left out: statistics are read together with the log.
LONGEST = 256


@dataclass(frozen=True)
class FileBounds:
    """The least and the greatest value of a column in a file, if known, and the count of NULLs."""

    column: str
    least: Any
    greatest: Any
    nulls: int

    def statistics(self) -> dict[str, dict[str, Any]]:
        """Return the column's part of a Delta file's statistics."""
        statistics: dict[str, dict[str, Any]] = {"nullCount": {self.column: self.nulls}}
        if _is_exact(self.least) and _is_exact(self.greatest):
            statistics["minValues"] = {self.column: _as_json(self.least)}
            statistics["maxValues"] = {self.column: _as_json(self.greatest)}
        return statistics


def bounds_of(rows: pa.Table, apart: str | None) -> FileBounds | None:
    """Return the bounds of rows in memory; None without a column."""
    if apart is None:
        return None
    extremes = pc.min_max(rows[apart]).as_py()
    return FileBounds(apart, extremes["min"], extremes["max"], rows[apart].null_count)


def bounds_in(footer: pq.FileMetaData, apart: str | None) -> FileBounds | None:
    """Return the bounds of a file by its footer; None if the statistics are incomplete."""
    if apart is None:
        return None
    place = footer.schema.names.index(apart)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    least, greatest, nulls = [], [], 0
    for group in groups:
        statistics = group.column(place).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        nulls += statistics.null_count
        if statistics.null_count == group.num_rows:
            continue
        if not statistics.has_min_max:
            return None
        least.append(statistics.min)
        greatest.append(statistics.max)
    return FileBounds(apart, min(least, default=None), max(greatest, default=None), nulls)


def _is_exact(value: Any) -> bool:
    """Return whether Delta keeps exact statistics of such a value.

    It keeps none of booleans, and those of timestamps only to the millisecond.
    """
    if value is None or isinstance(value, bool | datetime):
        return False
    return not isinstance(value, str) or len(value) <= LONGEST


def _as_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def add_action(path: str, file: LogFile, now: int, data_change: bool) -> AddAction:
    """Return the action that adds a file.

    Its statistics are the row count, the epochs and the least weight, which the log is read back
    from, and the bounds of the column that files are cut by, for other readers of the table. Spark
    takes those of other columns from the Parquet footer, where they are neither cut nor rounded.
    """
    least = {} if file.least_weight is None else {WEIGHT: file.least_weight}
    statistics: dict[str, Any] = {
        "numRecords": file.rows,
        "minValues": {EPOCH: file.first_epoch, **least},
        "maxValues": {EPOCH: file.last_epoch},
        "nullCount": {EPOCH: 0},
    }
    if file.bounds is not None:
        for kind, bounds in file.bounds.statistics().items():
            statistics[kind] |= bounds
    return AddAction(
        path=path,
        size=file.bytes,
        partition_values={},
        modification_time=now,
        data_change=data_change,
        stats=json.dumps(statistics),
    )


def remove_action(path: str, file: LogFile, now: int, data_change: bool) -> RemoveAction:
    """Return the action that removes a file from the log; vacuum deletes the file itself."""
    return RemoveAction(
        path=path,
        data_change=data_change,
        deletion_timestamp=now,
        size=file.bytes,
        partition_values={},
    )
