"""VALUES"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.capture.wal.decoder import Images
from headrace.capture.wal.protocol import not_decodable
from headrace.capture.wal.text_decoders import parse_texts
from headrace.errors import HeadraceError, NeedsReinit
from headrace.source.reading import (
    MAXIMUM_SHOWN_LENGTH,
    WEIGHT,
    does_not_fit,
    stored_schema,
    telling_columns,
    to_stored,
)
from headrace.source.table import SourceColumn, SourceTable


def stored_images(
    images: Images, table: SourceTable, columns: Sequence[SourceColumn] | None = None
) -> pa.Table:
    """The rows with the schema of `stored_schema(columns, weighted=True)`.

    `columns` are those wanted, all that are stored unless told: of images of kind `key` only the
    key's are there. They must be columns of the images' relation, see `differences`. Old rows weigh
    −1, new ones +1; an unchanged value is NULL. Raises `value-does-not-fit`, naming row and column,
    for every row there is: those of no interest are left out before, by `Images.where`.
    """
    weight = np.full(len(images), 1 if images.image == "new" else -1, np.int64)
    stored = {WEIGHT: pa.chunked_array([weight])}
    for column in table.stored if columns is None else columns:
        texts = _texts(images.values[column.name], column)
        try:
            stored[column.physical] = _stored(texts, column)
        except (ValueError, NeedsReinit):
            raise _misfit(images, table, column, texts) from None
    return pa.table(stored)


def _stored(texts: pa.Array, column: SourceColumn) -> pa.ChunkedArray:
    assert column.type is not None
    values = pa.table({column.physical: parse_texts(texts, column.type)})
    return to_stored(values, [column])[column.physical]


def _texts(values: pa.Array, column: SourceColumn) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise not_decodable(f'A value of column "{column.name}" is not UTF-8.') from error


def _misfit(
    images: Images, table: SourceTable, column: SourceColumn, texts: pa.Array
) -> HeadraceError:
    """The error that names the first value which cannot be stored."""
    index = _first_refused(texts, column)
    value = str(texts[index])[:MAXIMUM_SHOWN_LENGTH]
    what = f'column "{column.name}" of {table.schema}.{table.name}'
    assert column.type is not None
    if column.type.misfit is None:
        # Everybody may read why a source leaves the log, so the value is not quoted.
        return not_decodable(f"A value in {what} is no {column.declared}.")
    row = ", ".join(
        f"{each.name} = {_shown(images, each, index)}" for each in telling_columns(table)
    )
    return does_not_fit(what, f"The value is {value}, in the row with {row}.")


def _first_refused(texts: pa.Array, column: SourceColumn) -> int:
    """The index of the first value that is refused, of which there is one: halved until found."""
    first, end = 0, len(texts)
    while end - first > 1:
        middle = (first + end) // 2
        try:
            _stored(texts[first:middle], column)
            first = middle
        except (ValueError, NeedsReinit):
            end = middle
    return first


def _shown(images: Images, column: SourceColumn, index: int) -> str:
    value = images.values[column.name][index].as_py() if column.name in images.values else None
    return "NULL" if value is None else value.decode(errors="replace")[:MAXIMUM_SHOWN_LENGTH]


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
