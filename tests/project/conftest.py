"""A project on the test run's one Spark, for what has to be computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def computing(dsn: str, tmp_path: Path, spark: SparkSession) -> Iterator[headrace.Headrace]:
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        headrace.connect(dsn=dsn, home=tmp_path / "home", spark=spark) as opened,
    ):
        sql.execute("CREATE TABLE orders (id int PRIMARY KEY, amount bigint)")
        sql.execute("INSERT INTO orders VALUES (1, 10), (2, 5)")
        yield opened
