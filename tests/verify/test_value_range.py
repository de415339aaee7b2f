"""Ranges of values to be verified: they are the partitions, and all engines agree on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import UserError
from headrace.publish.partition_scheme import Scheme, scheme_of
from headrace.publish.ranges import Ranges
from headrace.render.scalars import column as spark_column
from headrace.spark.run import Input, Runner
from headrace.spark.session import Spark
from headrace.types import Type
from headrace.verify.oracle import Oracle
from headrace.verify.resume import is_verified
from headrace.verify.sample import Sample, SampleRequest, chosen
from tests.catalog import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATES = [
    date(1, 1, 1), date(1, 1, 7), date(1, 12, 31), date(1969, 12, 31), date(1970, 1, 1),
    date(2024, 2, 29), date(2026, 2, 28), date(2026, 3, 1), date(2026, 3, 31), date(2026, 4, 1),
    date(9999, 12, 30),
]  # fmt: skip
MOMENTS = [
    datetime.combine(one, time(*at))
    for one in DATES
    for at in ((0, 0), (12, 30), (23, 59, 59, 999999))
]
INTEGERS = [-(2**63), -(2**63) + 1, -1001, -1000, -999, -1, 0, 1, 999, 1000, 2**53 + 1, 2**63 - 1]
VALUES: dict[str, list[Any]] = {
    "smallint": [-(2**15), -1001, -1000, -1, 0, 999, 1000, 2**15 - 1],
    "integer": [-(2**31), -1001, -1000, -1, 0, 999, 1000, 2**31 - 1],
    "bigint": INTEGERS,
    "date": [*DATES, date(9999, 12, 31)],
    "timestamp": MOMENTS,
    "timestamptz": [one.replace(tzinfo=UTC) for one in MOMENTS if one.date() != date.min],
}
UNITS = ("day", "week", "month", "year")
WIDTHS = (1, 7, 1000, 10**19)
CASES = [
    *(
        (kind, f"{unit}(c)", unit, None)
        for kind in ("date", "timestamp", "timestamptz")
        for unit in UNITS
    ),
    *(
        (kind, f"range(c, {width})", None, width)
        for kind in ("smallint", "integer", "bigint")
        for width in WIDTHS
    ),
]


def table_of(kind: str, partition_by: str) -> StreamTable:
    columns = (OutputColumn("c", Type(kind), kind), OutputColumn("k", Type("bigint"), "bigint"))
    options = {"partition_by": partition_by}
    return StreamTable("r1", "public", "totals", "", columns, (), key=("k",), options=options)


def sample_of(kind: str, partition_by: str, *values: Any) -> Sample:
    return chosen(SampleRequest.of({"c": values}), table_of(kind, partition_by), ())


def rows(kind: str) -> pa.Table:
    values = [None, *VALUES[kind]]
    weights = pa.array([1] * len(values), pa.int64())
    return pa.table([weights, pa.array(values, Type(kind).arrow)], names=["_weight", "c"])


def samples(kind: str, partition_by: str) -> list[Sample]:
    return [
        *(sample_of(kind, partition_by, value) for value in VALUES[kind]),
        sample_of(kind, partition_by, None),
        sample_of(kind, partition_by, None, VALUES[kind][2], VALUES[kind][-1]),
    ]


@pytest.mark.parametrize(
    ("kind", "partition_by", "value", "bounds"),
    [
        ("date", "month(c)", "2026-03-17", ["2026-03-01", "2026-04-01"]),
        ("date", "source(month(c))", "2026-12-17", ["2026-12-01", "2027-01-01"]),
        ("date", "week(c)", date(2026, 3, 1), ["2026-02-23", "2026-03-02"]),
        ("date", "year(c)", "9999-12-31", ["9999-01-01", "10000-01-01"]),
        ("timestamp", "day(c)", "2026-03-01", ["2026-03-01 00:00:00", "2026-03-02 00:00:00"]),
        (
            "timestamptz",
            "day(c)",
            "2026-03-01 23:30-01",
            ["2026-03-02 00:00:00+00", "2026-03-03 00:00:00+00"],
        ),
        ("bigint", "range(c, 1000)", -1, ["-1000", "0"]),
        ("bigint", "range(c, 1000)", "+1000", ["1000", "2000"]),
    ],
)
def test_a_value_stands_for_its_range(
    kind: str, partition_by: str, value: Any, bounds: list[str]
) -> None:
    covered = sample_of(kind, partition_by, value).covered(3, 9)
    scheme = partition_by.removeprefix("source(").replace("))", ")")
    assert (covered["ranges"], covered["partition_by"]) == ([bounds], scheme)
    assert (covered["column"], covered["rows"], covered["of"]) == ("c", 3, 9)


def test_values_of_one_range_are_one() -> None:
    sample = sample_of("date", "month(c)", "2026-03-17", "2026-03-18", None)
    assert sample.covered(1, 1)["ranges"] == [["2026-03-01", "2026-04-01"]]
    assert sample.covered(1, 1)["values"] == ["2026-03-17", "2026-03-18", None]


@pytest.mark.parametrize(
    ("kind", "partition_by", "value"),
    [
        *(
            ("date", "month(c)", value)
            for value in ("", "March", "2026-13-01", "infinity", "9" * 9)
        ),
        ("timestamp", "day(c)", ""),
        ("timestamp", "day(c)", "2026-03-01 12:00+02"),
        ("timestamptz", "day(c)", "0001-01-01 00:00+02"),
        ("smallint", "range(c, 10)", 2**15),
        ("bigint", "range(c, 10)", "1.5"),
        ("bigint", "range(c, 10)", ""),
    ],
)
def test_what_is_no_value(kind: str, partition_by: str, value: Any) -> None:
    with pytest.raises(UserError) as refused:
        sample_of(kind, partition_by, value)
    assert refused.value.code == "invalid-option"


def test_other_columns_and_shares_are_as_ever() -> None:
    table = table_of("timestamp", "day(c)")
    assert chosen(SampleRequest.of("k=5"), table, ()).covered(1, 1)["values"] == ["5"]
    assert chosen(SampleRequest.of("10%"), table, ()).column.name == "k"
    with pytest.raises(UserError) as refused:
        chosen(SampleRequest.of("10% by c"), table, ())
    assert refused.value.code == "unsupported-type"


def test_a_receipt_of_other_ranges_is_none_of_these() -> None:
    request = SampleRequest.of("c=2026-03-17")
    table = table_of("date", "month(c)")
    covered = chosen(request, table, ()).covered(1, 1)
    receipt = replace(examples.RECEIPT, equal=True, oracle=Oracle.SPARK, covered=covered)
    since = receipt.verified_at

    def verified(scheme: Scheme | None) -> bool:
        return is_verified([receipt], since, Oracle.SPARK, request, scheme=scheme)

    assert verified(scheme_of(table.options))
    assert verified(scheme_of({"partition_by": "source(month(c))"}))
    assert not verified(scheme_of({"partition_by": "year(c)"}))
    # All of a range has more rows than one value.
    assert verified(None)
    receipt = replace(receipt, covered={"column": "c", "values": ["2026-03-17"]})
    assert not verified(scheme_of(table.options))


@pytest.mark.postgres
@pytest.mark.parametrize(("kind", "partition_by", "unit", "width"), CASES)
def test_postgresql_agrees(
    dsn: str, kind: str, partition_by: str, unit: str | None, width: int | None
) -> None:
    """It gives the same rows, and they are those that go into one partition."""
    with psycopg.connect(dsn) as connection:
        connection.execute("SET DateStyle = 'SQL, DMY'")
        connection.execute("SET TimeZone = 'Asia/Kolkata'")
        connection.execute(f"CREATE TEMPORARY TABLE v (place integer, c {kind})")
        for place, value in enumerate([None, *VALUES[kind]]):
            connection.execute("INSERT INTO v VALUES (%s, %s)", (place, value))
        column = OutputColumn("c", Type(kind), kind)
        start = Ranges(Scheme("c", unit, width), column).start(sql.Identifier("c"))
        starts = connection.execute(
            sql.SQL("SELECT ({})::text FROM v ORDER BY place").format(start)
        ).fetchall()
        found: list[list[int]] = []
        for sample in samples(kind, partition_by):
            where = sql.SQL(sample.postgres(sql.Identifier("c")))
            query = sql.SQL("SELECT place FROM v WHERE {} ORDER BY place").format(where)
            found.append([place for (place,) in connection.execute(query).fetchall()])
            filtered = sample.filtered(
                rows(kind).append_column("place", pa.array(range(len(starts))))
            )
            assert found[-1] == filtered.column("place").to_pylist()
        for place in range(1, len(starts)):
            same = [other for other, one in enumerate(starts) if one == starts[place]]
            assert found[place - 1] == same


@pytest.mark.spark
def test_spark_agrees(spark: SparkSession) -> None:
    runner = Runner(Spark.open(spark))
    for kind, partition_by, _, _ in CASES:
        given = rows(kind).append_column("place", pa.array(range(1 + len(VALUES[kind]))))
        conditions = {
            number: sample.spark(spark_column("c")).sql(dialect="spark")
            for number, sample in enumerate(samples(kind, partition_by))
        }
        text = " UNION ALL ".join(
            f"SELECT _weight, {number} AS number, place FROM v WHERE {where}"
            for number, where in conditions.items()
        )
        found = runner.collect(text, [Input("v", given.schema, rows=given)])
        expected = [
            (number, place)
            for number, sample in enumerate(samples(kind, partition_by))
            for place in sample.filtered(given).column("place").to_pylist()
        ]
        numbers = found.column("number").to_pylist()
        places = found.column("place").to_pylist()
        assert Counter(zip(numbers, places, strict=True)) == Counter(expected), (kind, partition_by)
