"""What the log has of a table whose old rows are known by their keys only, as it comes.

    INSERT                     new row
    UPDATE                     new row, without values that are stored apart and stay as they are
    UPDATE that moves the key  old key, then new row
    DELETE                     old key

Which rows that adds up to only the rows before can tell; see `ingest/keyed.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.capture.wal.decode import Images
from headrace.capture.wal.messages import not_decodable
from headrace.capture.wal.value_decoders import stored_images
from headrace.source.reading import stored_schema
from headrace.source.table import SourceColumn, SourceTable

POSITION = "_position"
IS_KEY = "_is_key"
UNSENT_PREFIX = "_unsent_"


def unsent(physical: str) -> str:
    """The name of the column that tells where values of a column were not sent."""
    return f"{UNSENT_PREFIX}{physical}"


def event_schema(columns: Sequence[SourceColumn]) -> pa.Schema:
    """The same for all events of a table, whatever is in them.

    `_position` grows with the log; an old key and the new row of the same UPDATE have positions
    that differ by 1. Where `_is_key` is true only key columns have values. A value that was not
    sent is NULL, and `_unsent_<column>` is true.
    """
    return pa.schema(
        [
            (POSITION, pa.int64()),
            (IS_KEY, pa.bool_()),
            *stored_schema(columns),
            *((unsent(column.physical), pa.bool_()) for column in columns),
        ]
    )


def events_of(images: Images, table: SourceTable, key: Sequence[int]) -> pa.Table:
    """Images of kind `key` or `new` as events; `key` are the column numbers of the identity.

    Raises `value-does-not-fit`, and `wal-not-decodable` where the log has another identity.
    """
    stored = table.stored
    keys = [column for column in stored if column.number in key]
    named = {column.name for column in images.relation.columns if column.key}
    if images.image == "old" or named != {column.name for column in keys}:
        raise not_decodable(
            f"Rows of {table.schema}.{table.name} have another replica identity in the log."
        )
    is_key = images.image == "key"
    values = stored_images(images, table, keys if is_key else stored)
    count = len(images)
    arrays = [pa.array(images.position), pa.array(np.full(count, is_key))]
    for column in stored:
        assert column.type is not None
        there = column.physical in values.column_names
        arrays.append(values[column.physical] if there else pa.nulls(count, column.type.arrow))
    for column in stored:
        gaps = images.unchanged.get(column.name)
        arrays.append(pa.array(np.zeros(count, np.bool_) if gaps is None else gaps))
    return pa.table(arrays, schema=event_schema(stored))
