"""Weighted rows of a key and a float."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from headrace.algebra.scalar import Column
from headrace.types import BIGINT, DOUBLE

SCHEMA = pa.schema([("_weight", pa.int64()), ("k", pa.int64()), ("x", pa.float64())])
FIELDS = (("k", Column("k", BIGINT)), ("x", Column("x", DOUBLE)))
NAN = float("nan")


def rows(*values: tuple[int, int | None, float | None]) -> pa.Table:
    columns = zip(zip(*values, strict=True), SCHEMA.types, strict=True)
    return pa.table([pa.array(column, type_) for column, type_ in columns], schema=SCHEMA)


def bag(table: pa.Table) -> Counter[tuple[object, ...]]:
    """Rows counted, floats by their digits: -0.0 is not 0.0, and NaN is NaN."""
    return Counter(
        (row["_weight"], row["k"], None if row["x"] is None else repr(row["x"]))
        for row in table.to_pylist()
    )
