"""Rows inside of change messages, found column by column over all messages of a relation.

    insert   I, relation, N, row
    update   U, relation, [K or O, old row,] N, row
    delete   D, relation, K or O, old row
    row      number of columns, then of each column: n (NULL), u (unchanged), t length text

The position of a column depends on the lengths of those before it, so all messages advance
together, one column at a step. Messages are read from an Arrow array as one run of bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.capture.wal.protocol import DELETE, FULL, INSERT, RelationMessage, not_decodable

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class MessageArray:
    """Messages one after another: message i lies from `starts[i]` up to `ends[i]` of `data`.

    Positions given to the methods must lie inside the data, with room for the number to read.
    """

    data: npt.NDArray[np.uint8]
    starts: Places
    ends: Places
    buffer: pa.Buffer

    def __len__(self) -> int:
        return len(self.starts)

    def message(self, index: int) -> bytes:
        return bytes(self.data[self.starts[index] : self.ends[index]])

    def unsigned16(self, places: Places) -> Places:
        return self._read(self._views[2], places)

    def unsigned32(self, places: Places) -> Places:
        return self._read(self._views[4], places)

    def unsigned64(self, places: Places) -> Places:
        """Return 64-bit numbers whose first bit is 0, such as WAL positions and times."""
        return self._read(self._views[8], places)

    def values(self, starts: Places, ends: Places, null: Mask) -> pa.Array:
        """Return the bytes between the positions as a binary array; starts must not overlap.

        Values and the gaps between them form one array without a copy; Arrow then takes every
        other element.
        """
        count = len(starts)
        if count == 0:
            return pa.array([], pa.binary())
        offsets = np.empty(2 * count, np.int32)
        offsets[0::2], offsets[1::2] = starts, ends
        alternating = pa.Array.from_buffers(
            pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), self.buffer]
        )
        indexes = np.arange(0, 2 * count, 2)
        return alternating.take(pa.array(indexes, mask=null if null.any() else None))

    @cached_property
    def _views(self) -> dict[int, npt.NDArray[Any]]:
        """Return views with the big-endian number that begins at each byte, by width."""
        return {
            width: np.ndarray(
                (max(len(self.data) - width + 1, 0),),
                np.dtype(f">u{width}"),
                self.data.data,
                strides=(1,),
            )
            for width in (2, 4, 8)
        }

    @staticmethod
    def _read(view: npt.NDArray[Any], places: Places) -> Places:
        return view[places].astype(np.int64)


def message_array(messages: pa.Array) -> MessageArray:
    """Return the messages of a binary array or slice; none may be NULL or empty."""
    if messages.type != pa.binary():
        raise not_decodable(f"Messages arrived as {messages.type} instead of binary.")
    if messages.null_count:
        raise not_decodable("A message is NULL.")
    if len(messages) == 0:
        none = np.empty(0, np.int64)
        return MessageArray(np.empty(0, np.uint8), none, none, pa.py_buffer(b""))
    _, offsets, buffer = messages.buffers()
    first = messages.offset
    places = np.frombuffer(offsets, np.int32)[first : first + len(messages) + 1].astype(np.int64)
    starts, ends = places[:-1], places[1:]
    if (starts == ends).any():
        raise not_decodable("A message is empty.")
    return MessageArray(np.frombuffer(buffer, np.uint8), starts, ends, buffer)


NULL, UNCHANGED, TEXT = ord("n"), ord("u"), ord("t")
NEW, OLD, KEY = ord("N"), ord("O"), ord("K")
# The letter and the relation's oid.
HEADER_BYTES = 5


@dataclass(frozen=True, eq=False)
class DecodedColumn:
    """The positions of a column's values; `null` and `unchanged` values have none."""

    starts: Places
    ends: Places
    null: Mask
    unchanged: Mask


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of the messages at `indexes`; each column has an element for each of them."""

    indexes: Places
    columns: tuple[DecodedColumn, ...]

    def values(self, messages: MessageArray, names: tuple[str, ...]) -> dict[str, pa.Array]:
        """Return the texts of each column as a binary array; NULL where NULL or unchanged."""
        return {
            name: messages.values(column.starts, column.ends, column.null | column.unchanged)
            for name, column in zip(names, self.columns, strict=True)
        }

    def unchanged(self, names: tuple[str, ...]) -> Mapping[str, Mask]:
        """Return masks of the unsent, unchanged values, of the columns that have such values."""
        return {
            name: column.unchanged
            for name, column in zip(names, self.columns, strict=True)
            if column.unchanged.any()
        }


def find_rows(
    messages: MessageArray, letters: Places, indexes: Places, relation: RelationMessage, whole: bool
) -> tuple[Rows, Rows]:
    """Return the old and the new rows of the changes at `indexes`, all of one relation.

    `whole`: old rows are whole, so unchanged new values are taken from the old row.
    """
    starts, ends = messages.starts[indexes] + HEADER_BYTES, messages.ends[indexes]
    _check(starts < ends)
    letter, tag = letters[indexes], messages.data[starts]
    has_old = tag == (OLD if relation.identity == FULL else KEY)
    is_new = letter != DELETE
    # An insert never has an old row, a delete always has one. If old rows are whole, every update
    # has one.
    expected = np.where(letter == INSERT, ~has_old, has_old | (is_new & (not whole)))
    if not (expected & (has_old | (tag == NEW))).all():
        raise not_decodable(
            f"Old rows of {relation.schema}.{relation.name} do not match its replica identity."
        )
    count = len(relation.columns)
    after = starts.copy()
    old_columns, after[has_old] = _columns(messages, starts[has_old] + 1, ends[has_old], count)
    _check(after[~is_new] == ends[~is_new])
    at, limit = after[is_new], ends[is_new]
    _check(at < limit)
    _check(messages.data[at] == NEW)
    new_columns, last = _columns(messages, at + 1, limit, count)
    _check(last == limit)
    if any(column.unchanged.any() for column in old_columns):
        raise not_decodable(f"An old row of {relation.schema}.{relation.name} is not complete.")
    if whole:
        matching = np.where(has_old, np.cumsum(has_old) - 1, -1)[is_new]
        new_columns = [
            _filled(new, old, matching) for new, old in zip(new_columns, old_columns, strict=True)
        ]
    old, new = Rows(indexes[has_old], tuple(old_columns)), Rows(indexes[is_new], tuple(new_columns))
    if any((column.unchanged & (letter[is_new] == INSERT)).any() for column in new.columns):
        raise not_decodable(f"A row inserted into {relation.schema}.{relation.name} has a gap.")
    return old, new


def _columns(
    messages: MessageArray, places: Places, limits: Places, count: int
) -> tuple[list[DecodedColumn], Places]:
    """Return the columns of the rows that begin at `places`, and the ends of those rows."""
    _check(places + 2 <= limits)
    _check(messages.unsigned16(places) == count)
    at = places + 2
    columns = []
    for _ in range(count):
        _check(at < limits)
        tag = messages.data[at]
        is_text, null, unchanged = tag == TEXT, tag == NULL, tag == UNCHANGED
        _check(is_text | null | unchanged)
        if is_text.all():
            start = at + 5
            _check(start <= limits)
            at = start + messages.unsigned32(at + 1)
        else:
            start = at + np.where(is_text, 5, 1)
            _check(start <= limits)
            at = start.copy()
            at[is_text] += messages.unsigned32(start[is_text] - 4)
        _check(at <= limits)
        columns.append(DecodedColumn(start, at, null, unchanged))
    return columns, at


def _filled(new: DecodedColumn, old: DecodedColumn, matching: Places) -> DecodedColumn:
    """Return the new column with unchanged values taken from the old row of the same message."""
    gaps = new.unchanged & (matching >= 0)
    if not gaps.any():
        return new
    source = matching[gaps]
    starts, ends, null = new.starts.copy(), new.ends.copy(), new.null.copy()
    starts[gaps], ends[gaps], null[gaps] = old.starts[source], old.ends[source], old.null[source]
    return DecodedColumn(starts, ends, null, new.unchanged & ~gaps)


def _check(expected: Mask) -> None:
    if not expected.all():
        raise not_decodable("A message about a changed row is malformed.")
