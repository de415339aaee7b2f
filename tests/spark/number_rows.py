"""A table of one column of numbers, as a log has it."""

from __future__ import annotations

import pyarrow as pa

from tests.spark.values import logged

NUMBERS = pa.schema([("_epoch", pa.int64()), ("_weight", pa.int64()), ("n", pa.int64())])


def numbers(*values: int) -> pa.Table:
    return logged(pa.table({"n": pa.array(values, pa.int64())}))
