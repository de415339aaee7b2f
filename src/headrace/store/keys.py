"""A set of keys, in which the keys of many rows are looked up at once."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.store.net import as_bytes, one_nan

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
# The distinct values of a column in order, the position of each row's value, and rows by position.
Ordered = tuple[npt.NDArray[Any], Numbers, Numbers]
ABSENT = -1
WIDEST_SPAN = 1 << 27


@dataclass(frozen=True, eq=False)
class _Step:
    """One more column: its values, and the existing pairs (number so far, value), as codes.

    (n, v)  is the code  n * number of values + place of v
    """

    values: pa.Array
    codes: Numbers

    @classmethod
    def over(cls, numbers: Numbers, column: pa.ChunkedArray) -> _Step:
        values = pc.unique(column)
        return cls(values, np.unique(_pairs(values, numbers, column)))

    def number(self, numbers: Numbers, column: pa.ChunkedArray) -> Numbers:
        """Return the pair of each row; `ABSENT` for pairs or numbers that do not exist."""
        pairs = _pairs(self.values, numbers, column)
        place = np.minimum(np.searchsorted(self.codes, pairs), len(self.codes) - 1)
        return np.where((pairs >= 0) & (self.codes[place] == pairs), place, ABSENT)


def _pairs(values: pa.Array, numbers: Numbers, column: pa.ChunkedArray) -> Numbers:
    """Return the code of each row's pair; `ABSENT` without a number or with another value."""
    indexes = pc.fill_null(pc.index_in(column, value_set=values), ABSENT)
    at = indexes.to_numpy().astype(np.int64)
    return np.where((numbers >= 0) & (at >= 0), numbers * len(values) + at, ABSENT)


class Keys:
    """The rows of a table as keys, numbered from 0; equal keys share a number.

    Any stored type may be in a key. Values are equal as they are for `net`, NULLs among them. `own`
    are the numbers of the rows themselves, `integers` the values, in order, of columns of whole
    numbers without NULL.
    """

    def __init__(self, rows: pa.Table) -> None:
        self.names: tuple[str, ...] = tuple(rows.column_names)
        self._rows = rows
        self._ordered: dict[str, Ordered | None] = {}
        self.integers: dict[str, Numbers] = {
            field.name: np.unique(rows[field.name].to_numpy().astype(np.int64))
            for field in rows.schema
            if pa.types.is_integer(field.type) and not rows[field.name].null_count
        }
        self._steps: list[_Step] = []
        numbers = np.zeros(rows.num_rows, np.int64)
        for column in _comparable(rows):
            step = _Step.over(numbers, column)
            self._steps.append(step)
            numbers = step.number(numbers, column) if rows.num_rows else numbers
        self.own = numbers

    def __len__(self) -> int:
        return len(self._steps[-1].codes)

    def are(self, rows: pa.Table) -> bool:
        """Return whether the distinct rows of another table are exactly these keys."""
        if tuple(rows.column_names) != self.names or rows.num_rows != len(self):
            return False
        return bool(self.has(rows).all())

    def find(self, rows: pa.Table) -> Numbers:
        """Return the number of each row's key; `ABSENT` (−1) for keys that are not in the set."""
        if not len(self):
            return np.full(rows.num_rows, ABSENT)
        numbers = np.zeros(rows.num_rows, np.int64)
        columns = _comparable(rows.select(self.names))
        for step, column in zip(self._steps, columns, strict=True):
            numbers = step.number(numbers, column)
        return numbers

    def has(self, rows: pa.Table) -> Mask:
        """Return whether each row's key is in the set."""
        column = rows[self.names[0]]
        if len(self.names) == 1 and self._span is not None and not column.null_count:
            least, is_key = self._span
            place = column.to_numpy().astype(np.int64) - least
            inside = (place >= 0) & (place < len(is_key))
            matches: Mask = inside & is_key[np.where(inside, place, 0)]
            return matches
        return self.find(rows) >= 0

    @cached_property
    def _span(self) -> tuple[int, Mask] | None:
        """Return the least key and a mask of the keys from there; None unless they are close."""
        values = self.integers.get(self.names[0])
        if values is None or not len(values):
            return None
        least, greatest = int(values[0]), int(values[-1])
        if greatest - least >= WIDEST_SPAN:
            return None
        is_key = np.zeros(greatest - least + 1, np.bool_)
        is_key[values - least] = True
        return least, is_key

    def matching(self, rows: pa.Table) -> pa.Table:
        """Return the rows whose key is in the set."""
        return rows.filter(pa.array(self.has(rows)))

    def ordered(self, name: str) -> Ordered | None:
        """Return a column in the order of file statistics; NULL has position `ABSENT`."""
        if name not in self._ordered:
            self._ordered[name] = _ordered(self._rows[name])
        return self._ordered[name]


def _ordered(column: pa.ChunkedArray) -> Ordered | None:
    present = pc.is_valid(column).to_numpy()
    values = _by_statistics(column.drop_null())
    if values is None:
        return None
    different, own = np.unique(values, return_inverse=True)
    places = np.full(len(column), ABSENT, np.int64)
    places[present] = own
    return different, places, np.argsort(places, kind="stable")


def _by_statistics(column: pa.ChunkedArray) -> npt.NDArray[Any] | None:
    """Return values as integers or bytes, decimals by their digits; None for other types."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return np.array(column.cast(pa.binary()).to_pylist(), object)
    if pa.types.is_decimal128(kind):
        exact = Context(prec=kind.precision + 1)
        return np.array([int(v.scaleb(kind.scale, exact)) for v in column.to_pylist()], object)
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    if pa.types.is_boolean(kind) or pa.types.is_timestamp(kind):
        column = column.cast(pa.int8() if pa.types.is_boolean(kind) else pa.int64())
    whole = pa.types.is_integer(column.type)
    return column.to_numpy().astype(np.int64) if whole else None


def _comparable(rows: pa.Table) -> list[pa.ChunkedArray]:
    """Return the columns in a form that Arrow can look up."""
    return [
        as_bytes(column) if pa.types.is_list(column.type) else column
        for column in one_nan(rows).columns
    ]
