"""Queries of the Join Order Benchmark, chosen for their join graphs, over a hundred movies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from bench.job.data import Movies
from bench.job.families import FAMILIES
from bench.job.render import equalities, queries
from bench.workload.run import Seen, Workload
from headrace.embedded import EmbeddedServer
from tests.bench.workloads import assert_kept, run_small
from tests.forms import SHARES, some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY = SHARES["tests/bench/test_job_small.py::test_query_is_kept"]
# One of most families: from four tables to seventeen; two cycles of equalities (7), an OR over
# one table (1, 20), no filter on a large table (16), movies joined with movies (32, 33).
CHOSEN = (
    *("j1a", "j2d", "j3c", "j4c", "j6f", "j7c", "j8c", "j9d", "j10c", "j11d", "j12c", "j13d"),
    *("j14c", "j15d", "j16b", "j17f", "j18c", "j20c", "j22d", "j25c", "j28c", "j29c", "j30c"),
    *("j32b", "j33a"),
)


@pytest.fixture(scope="module")
def seen(
    server: EmbeddedServer, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Seen]]:
    movies = Movies(titles=100, rows=40)
    texts = queries(FAMILIES)

    def change(sql: psycopg.Connection[Any], number: int) -> dict[str, int]:
        """Of the first two batches the second changes more results."""
        return movies.change(sql, number + 1)

    workload = Workload("job", {n: texts[n] for n in some(CHOSEN, EVERY)}, movies.load, change)
    with run_small(workload, server, spark, tmp_path_factory.mktemp("job")) as result:
        yield result


@pytest.mark.e2e
@pytest.mark.parametrize("name", CHOSEN)
def test_query_is_kept(seen: dict[str, Seen], name: str) -> None:
    assert_kept(seen[name])


@pytest.mark.e2e
def test_results_change(seen: dict[str, Seen]) -> None:
    assert sum(bool(one.changes) for one in seen.values()) >= len(CHOSEN) // 3


def test_all_113_queries_have_texts_of_their_own() -> None:
    texts = queries(FAMILIES)
    assert len(texts) == 113
    assert len(FAMILIES) == 33
    assert len(set(texts.values())) == 113


def test_equalities_hold_all_that_follow_from_others() -> None:
    family = next(family for family in FAMILIES if family.tables == "k mi mk t")
    movies = ("t.id", "mi.movie_id", "mk.movie_id")
    pairs = [f"{left} = {right}" for left, right in combinations(movies, 2)]
    assert equalities(family) == ["k.id = mk.keyword_id", *pairs]
