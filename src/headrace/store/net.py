"""The sum of the weights of each row: the bag that weighted rows amount to.

Arrow groups by neither lists nor their elements, so lists are compared as bytes.
"""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from headrace.store.layout import EPOCH, WEIGHT

NULL_ELEMENT = b"-"
LENGTH_END = b":"


def as_bytes(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return one value for each list, the same only for equal lists; NULL for NULL.

        [ab, NULL, ]  =  2:ab-0:

    Each element comes after its length, so that no list reads as another one. NaN equals NaN
    whatever its bits, and -0.0 differs from 0.0.
    """
    return pa.chunked_array([_encoded(chunk) for chunk in lists.chunks], pa.large_binary())


def _encoded(lists: pa.ListArray) -> pa.Array:
    counts = pc.fill_null(pc.list_value_length(lists), 0)
    ends = pc.cumulative_sum(counts)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
    encoded = pa.LargeListArray.from_arrays(offsets.cast(pa.int64()), _elements(lists.flatten()))
    joined = pc.binary_join(encoded, pa.scalar(b"", pa.large_binary()))
    return pc.if_else(lists.is_null(), pa.scalar(None, pa.large_binary()), joined)


def _elements(values: pa.Array) -> pa.Array:
    text = _spelled(values).cast(pa.large_binary())
    length = pc.binary_length(text).cast(pa.string()).cast(pa.large_binary())
    end = pa.scalar(LENGTH_END, pa.large_binary())
    separator = pa.scalar(b"", pa.large_binary())
    spelled = pc.binary_join_element_wise(length, end, text, separator)
    return pc.fill_null(spelled, pa.scalar(NULL_ELEMENT, pa.large_binary()))


def _spelled(values: pa.Array) -> pa.Array:
    """Return the elements as text or bytes, different for different values."""
    if pa.types.is_binary(values.type) or pa.types.is_string(values.type):
        return values
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(math.nan, values.type), values)
    return values.cast(pa.string())


_PLACE = "_place"


def net(table: pa.Table) -> pa.Table:
    """Group by all columns but `_weight` (and `_epoch`, which is dropped), sum, drop zeros.

        net(R)(row) = sum of the weights of row in R, where it is not 0

    Rows are equal when their columns are: NULL equals NULL, NaN equals NaN whatever its bits, and
    -0.0 differs from 0.0. The result keeps the order of the columns, not that of the rows.
    """
    names = [name for name in table.column_names if name != EPOCH]
    keys = [name for name in names if name != WEIGHT]
    rows = one_nan(table.select(names))
    # Without keys Arrow would sum no rows to one NULL.
    if not rows.num_rows:
        return rows
    if any(pa.types.is_list(field.type) for field in rows.schema):
        return _net_with_lists(rows, keys)
    sums = rows.group_by(keys, use_threads=False).aggregate([(WEIGHT, "sum")])
    sums = sums.rename_columns([*keys, WEIGHT]).select(names)
    return sums.filter(pc.not_equal(sums.column(WEIGHT), 0))


def net_retracted(rows: pa.Table) -> pa.Table:
    """Return the rows, netted if some of them retract others.

    A row that was updated ten times is in a log nineteen times: a join of six such inputs would
    have millions of matches for the one that remains.
    """
    weights = rows.column(WEIGHT)
    return net(rows) if pc.any(pc.less(weights, 0)).as_py() else rows


def _net_with_lists(rows: pa.Table, keys: list[str]) -> pa.Table:
    """Group by the bytes of lists; the first row of a group represents it."""
    grouped = rows.append_column(_PLACE, pa.array(range(rows.num_rows), pa.int64()))
    for position, field in enumerate(rows.schema):
        if pa.types.is_list(field.type):
            column = as_bytes(rows.column(position))
            grouped = grouped.set_column(position, field.name, column)
    sums = grouped.group_by(keys, use_threads=False).aggregate([(WEIGHT, "sum"), (_PLACE, "min")])
    sums = sums.filter(pc.not_equal(sums.column(f"{WEIGHT}_sum"), 0))
    first_rows = rows.take(sums.column(f"{_PLACE}_min"))
    weight = rows.schema.get_field_index(WEIGHT)
    return first_rows.set_column(weight, WEIGHT, sums.column(f"{WEIGHT}_sum"))


def one_nan(rows: pa.Table) -> pa.Table:
    """Return the rows with every NaN as the same NaN, because Arrow groups floats by their bits."""
    for position, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            column = rows.column(position)
            nan = pc.is_nan(column)
            if pc.any(nan).as_py():
                same = pc.if_else(nan, pa.scalar(math.nan, field.type), column)
                rows = rows.set_column(position, field, same)
    return rows
