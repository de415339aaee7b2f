"""Queries of TPC-DS, chosen for their shapes, over a part of the smallest scale."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from bench.tpcds.changes import Changes
from bench.tpcds.generator import generate, texts
from bench.tpcds.load import add_keys, create_tables, load
from bench.tpcds.schema import TABLES, columns, key, references
from bench.tpcds.spread import spread
from bench.tpcds.thin import thin
from bench.workload.answers import with_ties_broken
from bench.workload.options import options
from bench.workload.report import report
from bench.workload.run import Seen, Took, Workload
from headrace.embedded import EmbeddedServer
from tests.bench.workloads import assert_kept, run_small
from tests.forms import SHARES, some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY = SHARES["tests/bench/test_tpcds_small.py::test_query_is_kept"]
CHOSEN = (
    "q1",  # a WITH query named twice, a correlated average
    "q3",  # a star of three tables
    "q6",  # a scalar subquery of DISTINCT, a correlated one
    "q13",  # alternatives across tables, aggregates without groups
    "q15",  # alternatives of IN, LIKE and comparison
    "q16",  # EXISTS and NOT EXISTS, count of DISTINCT
    "q21",  # a quotient of two conditional sums
    "q22",  # ROLLUP
    "q33",  # IN within branches of a UNION ALL
    "q37",  # two fact tables by item
    "q41",  # a correlated count
    "q43",  # conditional sums by day
    "q44",  # first and last ranks joined
    "q45",  # IN beside OR
    "q51",  # a FULL JOIN of running sums
    "q59",  # weeks joined a year apart
    "q65",  # sums compared with a part of their average
    "q69",  # EXISTS and NOT EXISTS of three channels
    "q78",  # LEFT JOIN with IS NULL
    "q87",  # EXCEPT
    "q88",  # a cross join of counts
    "q93",  # a LEFT JOIN narrowed by a filter
    "q98",  # a window over sums
)
SCALE, PART = "0.01", 10


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    generate(folder, SCALE)
    return folder


def fill(sql: psycopg.Connection[Any], data: Path, part: int) -> dict[str, int]:
    create_tables(sql)
    rows = load(sql, data)
    spread(sql)
    thin(sql, part)
    add_keys(sql)
    return rows


@pytest.fixture(scope="module")
def seen(
    server: EmbeddedServer,
    spark: SparkSession,
    data: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Seen]]:
    known = texts()
    chosen = {name: known[name] for name in some(CHOSEN, EVERY)}
    workload = Workload("tpcds", chosen, lambda sql: fill(sql, data, PART), Changes(20).apply)
    with run_small(workload, server, spark, tmp_path_factory.mktemp("tpcds")) as result:
        yield result


@pytest.mark.e2e
@pytest.mark.parametrize("name", CHOSEN)
def test_query_is_kept(seen: dict[str, Seen], name: str) -> None:
    assert_kept(seen[name])


@pytest.mark.e2e
def test_results_change(seen: dict[str, Seen]) -> None:
    assert sum(bool(one.changes) for one in seen.values()) >= len(CHOSEN) // 3


@pytest.mark.postgres
@pytest.mark.parametrize("near_misses", [False, True])
def test_batches_keep_keys_valid(dsn: str, near_misses: bool, data: Path) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql:
        fill(sql, data, 20)
        changes = Changes(10, near_misses=near_misses)
        for number in range(3):
            assert set(changes.apply(sql, number)) == set(TABLES)
            for table in TABLES:
                for column, dimension in references(table).items():
                    (own,) = key(dimension)
                    lost = sql.execute(
                        f"SELECT count(*) FROM {table} WHERE {column} IS NOT NULL"
                        f" AND {column} NOT IN (SELECT {own} FROM {dimension})".encode()
                    ).fetchone()
                    assert lost == (0,), (number, table, column)


def test_all_99_queries_have_texts() -> None:
    assert list(texts()) == [f"q{number}" for number in range(1, 100)]


def test_columns_have_types() -> None:
    assert columns("income_band") == {
        "ib_income_band_sk": "integer",
        "ib_lower_bound": "integer",
        "ib_upper_bound": "integer",
    }
    assert references("inventory")["inv_warehouse_sk"] == "warehouse"


def test_ties_of_a_limit_are_broken_by_all_columns() -> None:
    query = "SELECT a, b FROM t ORDER BY a LIMIT 10"
    assert with_ties_broken(query, 2) == "SELECT a, b FROM t ORDER BY a, 1, 2\nLIMIT 10"
    for text in ("SELECT a FROM t ORDER BY a", "SELECT a FROM (SELECT 1 ORDER BY (1)) t LIMIT 10"):
        assert with_ties_broken(text, 1) == text


def test_report_names_what_is_not_right() -> None:
    equal, wrong = (
        Seen(created=Took(2.0, 1.0)),
        Seen(created=Took(4.0, 3.0), problems=["missing 1"]),
    )
    queries = {"q1": equal, "q2": wrong, "q3": Seen(refused="syntax-error")}
    workload = Workload("tpcds", {}, lambda _: {}, lambda _, __: {})
    assert report(workload, options([]), queries, stopped=True)["equal"] == 0
    result = report(workload, options(["BATCHES=0"]), queries)
    assert (result["equal"], result["failed"]) == (1, ["q2", "q3"])
    assert result["refused"] == {"q3": "syntax-error"}
    assert result["create"] == {
        "median_s": 3.0,
        "highest_s": 4.0,
        "median_cpu_s": 2.0,
        "highest_cpu_s": 3.0,
    }
    assert not result["stopped"]


def test_options() -> None:
    given = options(["SF=0.1", "ONLY=q1,q5", "BATCHES=4", "NEAR_MISSES=1"])
    assert (given.scale, given.only, given.batches) == ("0.1", frozenset({"q1", "q5"}), 4)
    assert given.near_misses
    with pytest.raises(SystemExit):
        options(["SIZE=1"])
    with pytest.raises(SystemExit):
        given.wanted({"q1": ""})
