"""A small form of a benchmark's workload: some queries, one batch, every result compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

import headrace
from bench.workload.run import Seen, Workload, run
from headrace.embedded import EmbeddedServer
from tests.databases import extra_database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = 1


@contextmanager
def run_small(
    workload: Workload, server: EmbeddedServer, spark: SparkSession, home: Path
) -> Iterator[dict[str, Seen]]:
    """Run a workload in a database of its own, on the test run's Spark."""
    seen: dict[str, Seen] = {}
    with (
        extra_database(server) as dsn,
        headrace.connect(dsn=dsn, home=home, spark=spark) as hr,
        psycopg.connect(dsn, autocommit=True) as sql,
    ):
        run(hr, sql, workload, BATCHES, seen)
        yield seen


def assert_kept(seen: Seen) -> None:
    """A query was accepted, followed the changes, and was right at first and after each batch."""
    assert seen.refused is None
    assert seen.problems == []
    modes = [refresh.mode for _, refresh in seen.refreshes]
    assert len(modes) == BATCHES
    assert set(modes) <= {"DIFFERENTIAL", "SKIPPED"}
