"""Parts of a stream table to be verified: which there are, and that all engines agree on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

from headrace.catalog.records import OutputColumn, Receipt, StreamTable
from headrace.errors import UserError
from headrace.render.scalars import column as spark_column
from headrace.spark.run import Input, Runner
from headrace.spark.session import Spark
from headrace.types import BIGINT, BOOLEAN, DOUBLE, TEXT, Type
from headrace.verify.sample import MOST_BUCKETS, Sample, SampleRequest, chosen
from tests.catalog import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = Type("date")
COLUMNS = tuple(
    OutputColumn(name, type_, type_.kind)
    for name, type_ in (("x", DOUBLE), ("n", BIGINT), ("t", TEXT), ("d", DAY), ("b", BOOLEAN))
)
TABLE = StreamTable("r1", "public", "totals", "", COLUMNS, (), key=("t", "n"))
VALUES: dict[str, list[Any]] = {
    "n": [None, 0, -1, 2**62, *range(40)],
    "t": [None, "", "a", "ü€😀", "a'b\\c", "NULL", " x "],
    "d": [None, date(1970, 1, 1), date(2026, 3, 1), date(1, 1, 1), date(9999, 12, 31)],
    "b": [None, True, False],
}


@pytest.mark.parametrize(
    ("given", "request_"),
    [
        (0.01, SampleRequest(share=0.01)),
        ("1%", SampleRequest(share=0.01)),
        ("0.5 by day", SampleRequest("day", 0.5)),
        ("2.5% by a b", SampleRequest("a b", 0.025)),
        ("day=2026-03-01,2026-03-02", SampleRequest("day", values=("2026-03-01", "2026-03-02"))),
        ({"k": [1, None, "a,b"]}, SampleRequest("k", values=("1", None, "a,b"))),
        ({"k": "one"}, SampleRequest("k", values=("one",))),
        ({"k": 5}, SampleRequest("k", values=("5",))),
        ({"a=b": [1]}, SampleRequest("a=b", values=("1",))),
        ({"{a}": ["{", None]}, SampleRequest("{a}", values=("{", None))),
        ('{"1% by x": ["y"]}', SampleRequest("1% by x", values=("y",))),
        ("1% by a=b", SampleRequest("a=b", 0.01)),
        ('k=["a,b", null]', SampleRequest("k", values=("a,b", None))),
    ],
)
def test_what_can_be_asked_for(given: Any, request_: SampleRequest) -> None:
    asked = SampleRequest.of(given)
    assert asked == request_
    assert SampleRequest.of(str(asked)) == asked


@pytest.mark.parametrize(
    "given",
    [0, -1, 1.0, "0%", "60%", "some", "", "k=[1", "k=[[1]]", {}, {"a": [], "b": []}, "{", "{}"],
)
def test_what_is_no_sample(given: Any) -> None:
    with pytest.raises(UserError) as refused:
        SampleRequest.of(given)
    assert refused.value.code == "invalid-option"


@pytest.mark.parametrize("given", [{"k": []}, {"k": ()}, "k=[]", '{"k": []}'])
def test_a_sample_without_values_would_prove_nothing(given: Any) -> None:
    with pytest.raises(UserError) as refused:
        SampleRequest.of(given)
    assert refused.value.code == "invalid-option"


def test_the_column_is_the_partition_s_or_the_first_of_the_key() -> None:
    def column(table: StreamTable, given: str = "10%") -> str:
        return chosen(SampleRequest.of(given), table, ()).column.name

    assert column(TABLE) == "t"
    assert column(replace(TABLE, options={"partition_by": "d"})) == "d"
    assert column(replace(TABLE, key=("x",))) == "n"
    assert column(TABLE, "10% by b") == "b"
    for given, code in (("10% by x", "unsupported-type"), ("1% by nobody", "unknown-column")):
        with pytest.raises(UserError) as refused:
            column(TABLE, given)
        assert refused.value.code == code
    with pytest.raises(UserError):
        column(replace(TABLE, columns=COLUMNS[:1], key=()))


def test_values_are_read_by_the_column_s_type() -> None:
    def values(given: str) -> tuple[str | None, ...]:
        return chosen(SampleRequest.of(given), TABLE, ()).values

    assert values("n= 5,+07,-1") == ("5", "7", "-1")
    assert values("b=yes,FALSE") == ("t", "f")
    assert values("d=1970-01-02, 1970-01-03") == ("1", "2")
    assert values("t= x ,") == (" x ", "")
    for given in ("n=five", "n=", "b=perhaps", "d=2026-13-01"):
        with pytest.raises(UserError) as refused:
            values(given)
        assert refused.value.code == "invalid-option"


def test_values_that_integers_do_not_have() -> None:
    with pytest.raises(UserError) as refused:
        chosen(SampleRequest.of({"n": [2**63]}), TABLE, ())
    assert refused.value.code == "invalid-option"


def test_a_very_small_share() -> None:
    assert chosen(SampleRequest.of("1e-320"), TABLE, ()).buckets == MOST_BUCKETS


def test_each_takes_the_bucket_after_the_last() -> None:
    request = SampleRequest.of("25%")
    first = chosen(request, TABLE, ())
    assert 0 <= first.bucket < first.buckets == 4
    past: list[Receipt] = []
    seen = []
    for _ in range(4):
        sample = chosen(request, TABLE, past)
        seen.append(sample.bucket)
        past.insert(0, replace(examples.RECEIPT, covered=sample.covered(1, 2)))
        # Of other buckets, another column, or the whole: these say nothing of the next one.
        past.insert(0, replace(examples.RECEIPT, covered=None))
        past.insert(
            0, replace(examples.RECEIPT, covered={"column": "n", "buckets": 4, "bucket": 1})
        )
    assert sorted(seen) == [0, 1, 2, 3]


def rows(name: str) -> pa.Table:
    """The values in their column, each with weight 1."""
    place = [column.name for column in COLUMNS].index(name)
    values = VALUES[name]
    columns: list[Any] = [pa.array([None] * len(values), one.type.arrow) for one in COLUMNS]
    columns[place] = pa.array(values, COLUMNS[place].type.arrow)
    weights = pa.array([1] * len(values), pa.int64())
    return pa.table([weights, *columns], names=["_weight", *(one.name for one in COLUMNS)])


def samples(name: str) -> list[Sample]:
    """All buckets of a column, and all of its values but one, each other as a user writes it."""
    place = [column.name for column in COLUMNS].index(name)
    buckets = [Sample(COLUMNS[place], place, (), bucket, 3) for bucket in range(3)]
    given = SampleRequest.of({name: VALUES[name][1:]})
    return [*buckets, chosen(given, TABLE, ()), Sample(COLUMNS[place], place, (None,))]


@pytest.mark.parametrize("name", VALUES)
def test_every_row_is_in_one_bucket(name: str) -> None:
    *buckets, values, null = samples(name)
    found = [sample.filtered(rows(name)).column(name).to_pylist() for sample in buckets]
    assert Counter(v for one in found for v in one) == Counter(VALUES[name])
    assert values.filtered(rows(name)).column(name).to_pylist() == VALUES[name][1:]
    assert null.filtered(rows(name)).column(name).to_pylist() == [None]


@pytest.mark.postgres
@pytest.mark.parametrize("name", VALUES)
def test_postgresql_agrees(dsn: str, name: str) -> None:
    (kind,) = [column.type.kind for column in COLUMNS if column.name == name]
    with psycopg.connect(dsn) as connection:
        connection.execute(f"CREATE TEMPORARY TABLE v (place integer, c {kind})")
        for place, value in enumerate(VALUES[name]):
            connection.execute("INSERT INTO v VALUES (%s, %s)", (place, value))
        for sample in samples(name):
            where = sample.postgres(sql.Identifier("c"))
            query = sql.SQL("SELECT c FROM v WHERE {} ORDER BY place").format(sql.SQL(where))
            found = [value for (value,) in connection.execute(query).fetchall()]
            assert found == sample.filtered(rows(name)).column(name).to_pylist()


@pytest.mark.spark
def test_spark_agrees(spark: SparkSession) -> None:
    runner = Runner(Spark.open(spark))
    for name in VALUES:
        for sample in samples(name):
            given = rows(name).select(["_weight", name]).rename_columns(["_weight", "c"])
            where = sample.spark(spark_column("c")).sql(dialect="spark")
            text = f"SELECT _weight, c FROM v WHERE {where}"
            found = runner.collect(text, [Input("v", given.schema, rows=given)])
            expected = sample.filtered(rows(name)).column(name).to_pylist()
            assert Counter(found.column("c").to_pylist()) == Counter(expected), (name, sample)
