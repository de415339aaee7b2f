"""What the tests of rendered queries share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from headrace.spark.run import Runner
from headrace.spark.session import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def runner(spark: SparkSession) -> Iterator[Runner]:
    opened = Runner(Spark.open(spark))
    yield opened
    opened.close()
