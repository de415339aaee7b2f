"""Files of a log as actions of a Delta commit."""

from __future__ import annotations

import json
from typing import Any

from deltalake.transaction import AddAction, RemoveAction

from headrace.store.layout import EPOCH, WEIGHT
from headrace.store.log import LogFile


def add_action(path: str, file: LogFile, now: int, data_change: bool) -> AddAction:
    """The action that adds a file.

    Its statistics are the row count, the epochs and the least weight, all that `files` needs, and
    those of the column that rows are kept apart by, for other readers of the table; Spark takes
    those of other columns from the Parquet footer, where they are neither cut off nor rounded.
    """
    least = {} if file.least_weight is None else {WEIGHT: file.least_weight}
    statistics: dict[str, Any] = {
        "numRecords": file.rows,
        "minValues": {EPOCH: file.first_epoch, **least},
        "maxValues": {EPOCH: file.last_epoch},
        "nullCount": {EPOCH: 0},
    }
    if file.bounds is not None:
        for kind, told in file.bounds.statistics().items():
            statistics[kind] |= told
    return AddAction(
        path=path,
        size=file.bytes,
        partition_values={},
        modification_time=now,
        data_change=data_change,
        stats=json.dumps(statistics),
    )


def remove_action(path: str, file: LogFile, now: int, data_change: bool) -> RemoveAction:
    """The action that takes a file out of the log; vacuum deletes the file itself."""
    return RemoveAction(
        path=path,
        data_change=data_change,
        deletion_timestamp=now,
        size=file.bytes,
        partition_values={},
    )
