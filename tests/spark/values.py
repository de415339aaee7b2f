"""Special values of every stored Arrow type."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

UTC = datetime.UTC

SPECIAL: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False, None],
    pa.int16(): [-32768, 32767, None],
    pa.int32(): [-2147483648, 2147483647, None],
    pa.int64(): [-9223372036854775808, 9223372036854775807, None],
    pa.float32(): [
        -0.0,
        0.0,
        float("nan"),
        float("inf"),
        float("-inf"),
        1.401298464324817e-45,
        None,
    ],
    pa.float64(): [-0.0, 0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 0.1, None],
    pa.decimal128(38, 10): [Decimal("9999999999999999999999999999.9999999999"), Decimal(0), None],
    pa.decimal128(5, 2): [Decimal("-999.99"), Decimal("0.01"), None],
    pa.decimal128(38, 0): [Decimal("-" + "9" * 38), None],
    pa.string(): ["", " ", "ä'\"\\`\n\t", "𝄞", "NULL", None],
    pa.binary(): [b"", b"\x00\xff", None],
    pa.date32(): [
        datetime.date(1, 1, 1),
        datetime.date(1582, 10, 4),
        datetime.date(1582, 10, 15),
        datetime.date(9999, 12, 31),
        None,
    ],
    pa.timestamp("us"): [
        datetime.datetime.fromisoformat("0001-01-01"),
        datetime.datetime.fromisoformat("1582-10-10 01:02:03.000004"),
        datetime.datetime.fromisoformat("1900-01-01 00:00:00.000001"),
        datetime.datetime.fromisoformat("9999-12-30 23:59:59.999999"),
        None,
    ],
    pa.timestamp("us", "UTC"): [
        datetime.datetime(1, 1, 2, tzinfo=UTC),
        datetime.datetime(1582, 10, 10, 1, 2, 3, 4, tzinfo=UTC),
        datetime.datetime(2024, 3, 31, 2, 30, tzinfo=UTC),
        datetime.datetime(9999, 12, 30, 23, 59, 59, 999999, tzinfo=UTC),
        None,
    ],
}


def special_table() -> pa.Table:
    """A column for every type, its special values repeated to the length of the longest."""
    height = max(len(values) for values in SPECIAL.values())
    columns = [
        pa.array([values[row % len(values)] for row in range(height)], data_type)
        for data_type, values in SPECIAL.items()
    ]
    return pa.table(columns, names=[f"c{number}" for number in range(1, len(columns) + 1)])


def logged(table: pa.Table, epoch: int = 1, weight: int = 1) -> pa.Table:
    """The rows as weighted rows of an epoch."""
    count = table.num_rows
    log = [pa.array([epoch] * count, pa.int64()), pa.array([weight] * count, pa.int64())]
    return pa.table([*log, *table.columns], names=["_epoch", "_weight", *table.column_names])


def stored(table: pa.Table, path: Path) -> str:
    """Write the table as one Parquet file, as delta-rs would; its path."""
    pq.write_table(table, path)
    return str(path)


def read_back(folder: Path) -> pa.Table:
    """All the parts that were written into a folder."""
    return pa.concat_tables([pq.read_table(part) for part in sorted(folder.glob("*.parquet"))])


def bag(table: pa.Table) -> list[str]:
    """The rows as text that distinguishes -0.0 from 0.0 and has NaN equal itself, in order."""
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())
