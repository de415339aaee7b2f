"""A set of keys, in which the keys of many rows are looked up at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.store.lists import as_bytes
from headrace.store.net import one_nan

Numbers = npt.NDArray[np.int64]
ABSENT = -1


@dataclass(frozen=True, eq=False)
class _Step:
    """One column more: its values, and the pairs (number so far, value) that there are, as codes.

    (n, v)  is the code  n * number of values + place of v
    """

    values: pa.Array
    codes: Numbers

    @classmethod
    def over(cls, numbers: Numbers, column: pa.ChunkedArray) -> _Step:
        values = pc.unique(column)
        return cls(values, np.unique(_pairs(values, numbers, column)))

    def number(self, numbers: Numbers, column: pa.ChunkedArray) -> Numbers:
        """Which pair each row has; `ABSENT` where the pair or the number so far is not there."""
        pairs = _pairs(self.values, numbers, column)
        place = np.minimum(np.searchsorted(self.codes, pairs), len(self.codes) - 1)
        return np.where((pairs >= 0) & (self.codes[place] == pairs), place, ABSENT)


def _pairs(values: pa.Array, numbers: Numbers, column: pa.ChunkedArray) -> Numbers:
    """The code of each row's pair, `ABSENT` where it has no number or another value."""
    found = pc.fill_null(pc.index_in(column, value_set=values), ABSENT)
    at = found.to_numpy().astype(np.int64)
    return np.where((numbers >= 0) & (at >= 0), numbers * len(values) + at, ABSENT)


class Keys:
    """The rows of a table as keys, numbered from 0; equal ones have one number.

    Any stored type may be in a key, NULL may not. Values are equal as they are for `net`. `own` are
    the numbers of the rows themselves, `integers` the values of columns of whole numbers, in order.
    """

    def __init__(self, rows: pa.Table) -> None:
        if any(column.null_count for column in rows.columns):
            raise ValueError("a key has no value")
        self.names: tuple[str, ...] = tuple(rows.column_names)
        self.integers: dict[str, Numbers] = {
            field.name: np.unique(rows[field.name].to_numpy().astype(np.int64))
            for field in rows.schema
            if pa.types.is_integer(field.type)
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

    def find(self, rows: pa.Table) -> Numbers:
        """The number of each row's key, `ABSENT` (−1) where it is not in the set."""
        if not len(self):
            return np.full(rows.num_rows, ABSENT)
        numbers = np.zeros(rows.num_rows, np.int64)
        columns = _comparable(rows.select(self.names))
        for step, column in zip(self._steps, columns, strict=True):
            numbers = step.number(numbers, column)
        return numbers

    def matching(self, rows: pa.Table) -> pa.Table:
        """The rows whose key is in the set."""
        return rows.filter(pa.array(self.find(rows) >= 0))

    def between(self, name: str, low: int, high: int) -> bool:
        """Whether a key has a value from low to high in a column of whole numbers."""
        numbers = self.integers[name]
        return bool(np.searchsorted(numbers, low) < np.searchsorted(numbers, high, side="right"))


def _comparable(rows: pa.Table) -> list[pa.ChunkedArray]:
    """The columns as Arrow can look them up."""
    return [
        as_bytes(column) if pa.types.is_list(column.type) else column
        for column in one_nan(rows).columns
    ]
