"""Our sessions of the one Spark application of the test run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from headrace.spark.run import Runner
from headrace.spark.session import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def ours(spark: SparkSession) -> Iterator[Spark]:
    """A `Spark` over the session of the test run, as over a user's own."""
    with Spark.open(spark) as opened:
        yield opened


@pytest.fixture(scope="session")
def runner(ours: Spark) -> Iterator[Runner]:
    made = Runner(ours)
    yield made
    made.close()
