"""ROWS"""

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
class Packed:
    """Messages one after another: message i lies from `starts[i]` up to `ends[i]` of `data`.

    The readers take places that lie inside of the data, with room for what is read.
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
        """Numbers that leave the first of 64 bits free, as log positions and times do."""
        return self._read(self._views[8], places)

    def values(self, starts: Places, ends: Places, null: Mask) -> pa.Array:
        """The bytes between the places, each start at or behind the end before it.

        Seen as one array in which values and the gaps between them alternate, nothing has to be
        copied before Arrow takes every other element.
        """
        count = len(starts)
        if count == 0:
            return pa.array([], pa.binary())
        offsets = np.empty(2 * count, np.int32)
        offsets[0::2], offsets[1::2] = starts, ends
        alternating = pa.Array.from_buffers(
            pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), self.buffer]
        )
        wanted = np.arange(0, 2 * count, 2)
        return alternating.take(pa.array(wanted, mask=null if null.any() else None))

    @cached_property
    def _views(self) -> dict[int, npt.NDArray[Any]]:
        """The big-endian number that begins at each byte, for each width."""
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


def packed(messages: pa.Array) -> Packed:
    """The messages of a binary array, be it a slice; none may be NULL or empty."""
    if messages.type != pa.binary():
        raise not_decodable(f"Messages arrived as {messages.type} instead of binary.")
    if messages.null_count:
        raise not_decodable("A message is NULL.")
    if len(messages) == 0:
        none = np.empty(0, np.int64)
        return Packed(np.empty(0, np.uint8), none, none, pa.py_buffer(b""))
    _, offsets, buffer = messages.buffers()
    first = messages.offset
    places = np.frombuffer(offsets, np.int32)[first : first + len(messages) + 1].astype(np.int64)
    starts, ends = places[:-1], places[1:]
    if (starts == ends).any():
        raise not_decodable("A message is empty.")
    return Packed(np.frombuffer(buffer, np.uint8), starts, ends, buffer)


NULL, UNCHANGED, TEXT = ord("n"), ord("u"), ord("t")
NEW, OLD, KEY = ord("N"), ord("O"), ord("K")
# The letter and the relation's oid.
HEADER_BYTES = 5


@dataclass(frozen=True, eq=False)
class DecodedColumn:
    """Where the values of one column lie; those that are `null` or `unchanged` lie nowhere."""

    starts: Places
    ends: Places
    null: Mask
    unchanged: Mask


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of some messages: `indexes` tells which, each column has an element a message."""

    indexes: Places
    columns: tuple[DecodedColumn, ...]

    def values(self, messages: Packed, names: tuple[str, ...]) -> dict[str, pa.Array]:
        """The texts of each column as a binary array; NULL where they are NULL or unchanged."""
        return {
            name: messages.values(column.starts, column.ends, column.null | column.unchanged)
            for name, column in zip(names, self.columns, strict=True)
        }

    def unchanged(self, names: tuple[str, ...]) -> Mapping[str, Mask]:
        """Of columns that have values which were not sent because they are as before: which."""
        return {
            name: column.unchanged
            for name, column in zip(names, self.columns, strict=True)
            if column.unchanged.any()
        }


def find_rows(
    messages: Packed, letters: Places, indexes: Places, relation: RelationMessage, whole: bool
) -> tuple[Rows, Rows]:
    """The old and the new rows of the changes at `indexes`, all of one relation.

    `whole` tells that old rows are: then a new value that is unchanged is found in the old row.
    """
    starts, ends = messages.starts[indexes] + HEADER_BYTES, messages.ends[indexes]
    _check(starts < ends)
    letter, tag = letters[indexes], messages.data[starts]
    has_old = tag == (OLD if relation.identity == FULL else KEY)
    is_new = letter != DELETE
    # Only an insert is sure to have no old row, only a delete to have one. Where
    # old rows are whole, every update has one.
    expected = np.where(letter == INSERT, ~has_old, has_old | (is_new & (not whole)))
    if not (expected & (has_old | (tag == NEW))).all():
        raise not_decodable(
            f"Old rows of {relation.schema}.{relation.name} are not as its identity says."
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
    messages: Packed, places: Places, limits: Places, count: int
) -> tuple[list[DecodedColumn], Places]:
    """The columns of the rows that begin at `places`, and where those rows end."""
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
    """The new column, values that are unchanged taken from the old row of the same message."""
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
