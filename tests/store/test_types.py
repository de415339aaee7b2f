"""Every stored type comes back bit for bit, from files of ours and of Spark's."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headrace.store import DeltaStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INF, NAN = float("inf"), float("nan")
# From the first microsecond of year 1 to the last of 9999, one before the Gregorian calendar.
TIMES = (-62135596800000000, -12219379200000001, -1, 0, 1, 253402300799999999)

VALUES: dict[str, tuple[pa.DataType, str, tuple[object, ...]]] = {
    "c1": (pa.bool_(), "BOOLEAN", (True, False)),
    "c2": (pa.int16(), "SMALLINT", (-(2**15), 2**15 - 1)),
    "c3": (pa.int32(), "INT", (-(2**31), 2**31 - 1)),
    "c4": (pa.int64(), "BIGINT", (-(2**63), 2**63 - 1)),
    "c5": (pa.float32(), "FLOAT", (0.0, -0.0, NAN, INF, -INF, 1.5)),
    "c6": (pa.float64(), "DOUBLE", (0.0, -0.0, NAN, INF, -INF, 5e-324)),
    "c7": (pa.decimal128(9, 2), "DECIMAL(9,2)", (Decimal("-1234567.89"), Decimal("0.00"))),
    "c8": (pa.decimal128(18, 0), "DECIMAL(18,0)", (Decimal(10**18 - 1),)),
    "c9": (pa.decimal128(38, 38), "DECIMAL(38,38)", (Decimal("0." + "9" * 38),)),
    "c10": (pa.decimal128(38, 10), "DECIMAL(38,10)", (Decimal("-" + "9" * 28 + ".0123456789"),)),
    "c11": (pa.string(), "STRING", ("", "ünï\U0001f600", "a\nb", "x" * 5000)),
    "c12": (pa.binary(), "BINARY", (b"", b"\x00\xff" * 3)),
    "c13": (pa.date32(), "DATE", (date.min, date(1582, 10, 10), date.max)),
    "c14": (pa.timestamp("us"), "TIMESTAMP_NTZ", TIMES),
    "c15": (pa.timestamp("us", "UTC"), "TIMESTAMP", TIMES),
    "c16": (pa.list_(pa.int32()), "ARRAY<INT>", ([], [1, None], [None])),
    "c17": (pa.list_(pa.string()), "ARRAY<STRING>", (["", "ü,"], [None])),
    "c18": (pa.list_(pa.decimal128(38, 18)), "ARRAY<DECIMAL(38,18)>", ([Decimal("1e-18")],)),
    "c19": (pa.list_(pa.timestamp("us", "UTC")), "ARRAY<TIMESTAMP>", ([TIMES[1], None],)),
    "c20": (pa.list_(pa.timestamp("us")), "ARRAY<TIMESTAMP_NTZ>", ([TIMES[1]],)),
    "c21": (pa.list_(pa.float64()), "ARRAY<DOUBLE>", ([-0.0, INF],)),
}
COLUMNS = pa.schema([(name, kind) for name, (kind, _, _) in VALUES.items()])
COUNT = 1 + max(len(values) for _, _, values in VALUES.values())
ROWS = pa.table(
    {"_weight": pa.array(range(1, COUNT + 1), pa.int64())}
    | {
        name: pa.array([*values, *[None] * (COUNT - len(values))], kind)
        for name, (kind, _, values) in VALUES.items()
    }
)
SPARK_COLUMNS = ", ".join(f"{name} {kind}" for name, (_, kind, _) in VALUES.items())
SPARK_SCHEMA = f"_epoch BIGINT, _weight BIGINT, {SPARK_COLUMNS}"


def exactly(value: object) -> object:
    if isinstance(value, list):
        return [exactly(element) for element in value]
    return struct.pack("<d", value) if isinstance(value, float) else value


def exact(table: pa.Table) -> list[tuple[object, ...]]:
    """Rows by weight, floats and times as their bits."""
    bits = []
    for column in table.select(ROWS.column_names).columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        if pa.types.is_list(column.type) and pa.types.is_timestamp(column.type.value_type):
            column = column.cast(pa.list_(pa.int64()))
        bits.append([exactly(value) for value in column.to_pylist()])
    return sorted(zip(*bits, strict=True))


def test_rows_come_back_in_another_process(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, ROWS)
    read = DeltaStore(tmp_path).read("r1", pin, 0, 1)
    assert read.schema == ROWS.schema
    assert exact(read) == exact(ROWS)
    assert exact(DeltaTable(tmp_path / "r1").to_pyarrow_table()) == exact(ROWS)


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """A session of its own, so that no other setting can make these tests pass."""
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        yield SparkSession.getActiveSession().newSession()
        return
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    started = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    yield started
    started.stop()


@pytest.mark.spark
@pytest.mark.filterwarnings("default")
def test_spark_reads_the_files_with_a_given_schema(tmp_path: Path, session: SparkSession) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, ROWS)
    pin = store.append("r1", pin, 2, ROWS.slice(0, 2))
    session.conf.set("spark.sql.session.timeZone", "UTC")
    uris = [file.uri for file in store.files("r1", pin, 0, 1)]
    read = session.read.schema(SPARK_SCHEMA).parquet(*uris)
    assert exact(read.toArrow()) == exact(ROWS)
    both = [file.uri for file in store.files("r1", pin, 0, 2)]
    assert session.read.schema(SPARK_SCHEMA).parquet(*both).count() == COUNT + 2


@pytest.mark.spark
@pytest.mark.filterwarnings("default")
def test_spark_writes_parts_that_are_registered(tmp_path: Path, session: SparkSession) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, ROWS)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    uris = [file.uri for file in store.files("r1", pin, 0, 1)]
    again = session.read.schema(SPARK_SCHEMA).parquet(*uris).drop("_epoch")
    again = again.selectExpr("CAST(2 AS BIGINT) AS _epoch", "*").repartition(3)
    folder = store.new_folder("r1", 2)
    again.write.parquet(folder)
    pin = store.register("r1", pin, 2, folder, rows=COUNT)
    assert pin.version == 2
    assert exact(store.read("r1", pin, 1, 2)) == exact(ROWS)
    assert exact(DeltaStore(tmp_path).read("r1", pin, 0, 2)) == sorted(exact(ROWS) * 2)
    assert DeltaTable(tmp_path / "r1").to_pyarrow_table().num_rows == 2 * COUNT


@pytest.mark.spark
@pytest.mark.filterwarnings("default")
def test_an_empty_spark_write_is_an_epoch_without_rows(
    tmp_path: Path, session: SparkSession
) -> None:
    store = DeltaStore(tmp_path)
    pin = store.create("r1", COLUMNS)
    folder = store.new_folder("r1", 1)
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    session.createDataFrame([], SPARK_SCHEMA).write.parquet(folder)
    after = store.register("r1", pin, 1, folder, rows=0)
    assert (after.version, after.epoch) == (0, 1)
