"""Decoded rows in the Arrow form that is stored, the same that a read through ADBC returns.

Rows of a table whose old rows are known by key only come as events:

    INSERT                     new row
    UPDATE                     new row, without unchanged values that are stored out of line
    UPDATE that moves the key  old key, then new row
    DELETE                     old key

Their net change depends on the rows before; see `ingest/keyed.py`.
"""

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
    identifying_columns,
    stored_schema,
    to_stored,
)
from headrace.source.table import SourceColumn, SourceTable


def stored_images(
    images: Images, table: SourceTable, columns: Sequence[SourceColumn] | None = None
) -> pa.Table:
    """Return the rows with the schema of `stored_schema(columns, weighted=True)`.

    `columns` defaults to all stored columns; images of kind `key` have only those of the key. They
    must be columns of the images' relation, see `differences`. Old rows weigh −1, new ones +1; an
    unchanged value is NULL. Raises `value-does-not-fit`, with row and column, for any of the rows:
    leave out the others before, with `Images.where`.
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
    """Return the error for the first value that cannot be stored."""
    index = _first_refused(texts, column)
    value = str(texts[index])[:MAXIMUM_SHOWN_LENGTH]
    column_name = f'column "{column.name}" of {table.schema}.{table.name}'
    assert column.type is not None
    if column.type.misfit is None:
        # The reason why a source leaves WAL mode is public, so the value is not quoted.
        return not_decodable(f"A value in {column_name} is not of type {column.declared}.")
    row = ", ".join(
        f"{each.name} = {_shown(images, each, index)}" for each in identifying_columns(table)
    )
    return does_not_fit(column_name, f"The value is {value}, in the row with {row}.")


def _first_refused(texts: pa.Array, column: SourceColumn) -> int:
    """Return the index of the first value that cannot be stored, by bisection; there is one."""
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
    """Return the name of the column that marks values of a column that were not sent."""
    return f"{UNSENT_PREFIX}{physical}"


def event_schema(columns: Sequence[SourceColumn]) -> pa.Schema:
    """Return the schema of a table's events.

    `_position` increases with the WAL; an old key and the new row of the same UPDATE have positions
    that differ by 1. If `_is_key` is true only key columns have values. A value that was not sent
    is NULL, and `_unsent_<column>` is true.
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
    """Return images of kind `key` or `new` as events; `key` has the identity's column numbers.

    Raises `value-does-not-fit`, and `wal-not-decodable` if the WAL has another identity.
    """
    stored = table.stored
    keys = [column for column in stored if column.number in key]
    named = {column.name for column in images.relation.columns if column.key}
    if images.image == "old" or named != {column.name for column in keys}:
        raise not_decodable(
            f"Rows of {table.schema}.{table.name} have another replica identity in the WAL."
        )
    is_key = images.image == "key"
    values = stored_images(images, table, keys if is_key else stored)
    count = len(images)
    arrays = [pa.array(images.position), pa.array(np.full(count, is_key))]
    for column in stored:
        assert column.type is not None
        is_present = column.physical in values.column_names
        arrays.append(values[column.physical] if is_present else pa.nulls(count, column.type.arrow))
    for column in stored:
        gaps = images.unchanged.get(column.name)
        arrays.append(pa.array(np.zeros(count, np.bool_) if gaps is None else gaps))
    return pa.table(arrays, schema=event_schema(stored))
