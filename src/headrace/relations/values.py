"""Expressions over rows that are in memory, each different value computed once."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.scalar import Column, Scalar, columns_of
from headrace.plan.evaluate import scalar
from headrace.plan.operators import Scan

# For more different values Spark is as quick.
MOST_VALUES = 20_000


def values_of(rows: pa.Table, scan: Scan, values: tuple[Scalar, ...]) -> pa.Table | None:
    """A column for each expression over rows of the scan; None if these have too many values.

    An expression reads one column.
    """
    physical = {column: name for name, column in scan.fields}
    columns: list[pa.ChunkedArray] = []
    for value in values:
        if isinstance(value, Column):
            columns.append(rows[physical[value]])
            continue
        (column,) = columns_of(value)
        found = rows[physical[column]]
        different = found.unique()
        if len(different) > MOST_VALUES:
            return None
        results = [scalar(value, {column: each}) for each in different.to_pylist()]
        places = pc.index_in(found, value_set=different)
        columns.append(pc.take(pa.array(results, value.type.arrow), places))
    return pa.Table.from_arrays(columns, names=[f"v{i}" for i in range(len(values))])
