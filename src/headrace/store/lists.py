"""Lists as bytes: Arrow groups by neither lists nor what they are made of."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

NULL_ELEMENT = b"-"
LENGTH_END = b":"


def as_bytes(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    """One value for each list, the same for equal lists alone; NULL for NULL.

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
    """The elements as text or bytes, different values differently."""
    if pa.types.is_binary(values.type) or pa.types.is_string(values.type):
        return values
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(math.nan, values.type), values)
    return values.cast(pa.string())
