"""An Arrow array of binary messages as one run of bytes, read at many places at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.capture.wal.messages import not_decodable

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
