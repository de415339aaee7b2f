"""verify of a part of a stream table: what is in the part is compared, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace
from headrace.catalog import Change
from headrace.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

QUERY = "SELECT customer, day, count(*) AS n FROM orders GROUP BY customer, day"
WRONG = QUERY.replace("count(*)", "count(*) + CASE WHEN customer = 3 THEN 1 ELSE 0 END")
ORDERS = "SELECT n % 7, date '2026-03-01' + n % 2 FROM generate_series(1, 99) n"


@pytest.fixture
def project(dsn: str, tmp_path: Path, spark: SparkSession) -> headrace.Headrace:
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE orders (customer int, day date)")
        sql.execute(f"INSERT INTO orders {ORDERS}")
        sql.execute("INSERT INTO orders VALUES (NULL, NULL)")
    return headrace.connect(dsn=dsn, home=tmp_path, spark=spark)


def test_what_is_in_the_part_is_compared(project: headrace.Headrace) -> None:
    """The table was computed by one query, and is verified by one that is wrong for customer 3."""
    with project:
        project.create_stream_table("totals", QUERY, partition_by="day")
        project.create_stream_table(
            "over", "SELECT customer, max(n) AS n FROM totals GROUP BY customer"
        )
        engine = project._engine
        (totals,) = [one for one in engine.catalog.state().stream_tables if one.name == "totals"]
        assert project.verify("totals", sample={"day": [None]}).covered == {
            "column": "day",
            "values": [None],
            "rows": 1,
            "of": 15,
        }
        with engine.writing() as lease:
            change = Change(put=(replace(totals, query=WRONG),))
            engine.catalog.commit(change, fence=lease.fence)
        for oracle in ("spark", "postgres"):
            wrong = project.verify("totals", oracle=oracle, sample={"customer": [3, None]})
            assert (wrong.equal, wrong.missing, wrong.surplus, wrong.rows) == (False, 2, 2, 3)
            right = project.verify("totals", oracle=oracle, sample="customer=1,2")
            assert (right.equal, right.rows) == (True, 4)
            day = project.verify("totals", oracle=oracle, sample="day=2026-03-02")
            assert (day.equal, day.missing, day.rows) == (False, 1, 7)
            found = [
                project.verify("totals", oracle=oracle, sample="25% by customer") for _ in range(4)
            ]
            assert sum(receipt.rows for receipt in found) == 15
            assert [receipt.equal for receipt in found].count(False) == 1
            assert sorted(one.covered["bucket"] for one in found if one.covered) == [0, 1, 2, 3]
        # What the table reads is taken as it is stored.
        assert list(project.verify("over", sample="customer=1").detail) == [
            "recomputed public.over",
            "served public.over",
        ]
        assert not project.verify("over").equal
        listed = project.receipts("totals")
        assert len(listed) == 15 and listed[0].covered is not None
        assert listed[0].oracle == "postgres"


def test_a_served_row_that_somebody_changed(project: headrace.Headrace) -> None:
    with project:
        project.create_stream_table("totals", QUERY)
        with psycopg.connect(project.dsn, autocommit=True) as sql:
            sql.execute("SET headrace.publishing = 'on'")
            sql.execute("UPDATE totals SET n = n + 1 WHERE customer = 5 AND day = '2026-03-01'")
        (done,) = project.run("VERIFY STREAM TABLE totals SAMPLE 'customer=5'")
        assert done.equal is False
        assert project.verify("totals", sample={"customer": [4]}).equal


def test_a_value_stands_for_its_partition_by_range(project: headrace.Headrace) -> None:
    query = (
        "SELECT customer, CAST(day + 31 * (customer % 2) AS timestamp) AS noted, count(*) AS n"
        " FROM orders GROUP BY 1, 2"
    )
    with project:
        project.create_stream_table("totals", query, partition_by="month(noted)")
        with psycopg.connect(project.dsn, autocommit=True) as sql:
            sql.execute("SET headrace.publishing = 'on'")
            sql.execute("UPDATE totals SET n = n + 1 WHERE noted < '2026-04-01' AND customer = 2")
        for oracle in ("spark", "postgres"):
            march = project.verify("totals", oracle=oracle, sample="noted=2026-03-17")
            assert (march.equal, march.rows, march.missing) == (False, 8, 2)
            april = project.verify("totals", oracle=oracle, sample="noted=2026-04-30 23:59")
            assert april.covered == {
                "column": "noted",
                "values": ["2026-04-30 23:59"],
                "partition_by": "month(noted)",
                "ranges": [["2026-04-01 00:00:00", "2026-05-01 00:00:00"]],
                "rows": 6,
                "of": 15,
            }
            assert april.equal


def test_values_that_no_row_has(project: headrace.Headrace) -> None:
    """A sample without rows is equal to anything; one with rows says which values had none."""
    with psycopg.connect(project.dsn, autocommit=True) as sql:
        sql.execute("CREATE TYPE mood AS ENUM ('sad', 'glad', 'calm')")
        sql.execute("CREATE TABLE moods (m mood)")
        sql.execute("INSERT INTO moods VALUES ('sad'), ('glad')")
    with project:
        project.create_stream_table("felt", "SELECT m, count(*) AS n FROM moods GROUP BY m")
        project.create_stream_table("totals", QUERY, partition_by="month(day)")
        for oracle in ("spark", "postgres"):
            for name, sample in (
                ("felt", "m=mad"),
                ("felt", "m= sad, glad"),
                ("felt", {"m": [None]}),
                ("totals", "day=2027-01-01"),
                ("totals", "customer=99"),
            ):
                with pytest.raises(UserError, match="nothing was compared") as refused:
                    project.verify(name, oracle=oracle, sample=sample)
                assert refused.value.code == "invalid-option"
            some = project.verify("felt", oracle=oracle, sample="m=sad, glad")
            assert (some.equal, some.rows) == (True, 1)
            assert some.covered is not None
            assert some.covered["without_rows"] == [" glad"]
            days = project.verify("totals", oracle=oracle, sample="day=2026-03-01,2027-01-01")
            assert days.covered is not None
            assert days.covered["without_rows"] == [["2027-01-01", "2027-02-01"]]
        assert len(project.receipts("felt")) == 2
        with psycopg.connect(project.dsn, autocommit=True) as sql:
            sql.execute("SET headrace.publishing = 'on'")
            sql.execute("INSERT INTO felt (m, n) VALUES ('calm', 1)")
        found = project.verify("felt", sample="m=calm")
        assert (found.equal, found.surplus + found.missing, found.rows) == (False, 1, 0)
