"""Fixtures: a project on a fresh database and the test run's one Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def project(dsn: str, tmp_path: Path, spark: SparkSession) -> Iterator[headrace.Headrace]:
    """A project; `HEADRACE_ACCESS_PATH` forces a way to rows that a change joins with."""
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as opened:
        if way := os.environ.get("HEADRACE_ACCESS_PATH"):
            opened.set("access_path", way)
        yield opened


@pytest.fixture
def sql(dsn: str) -> Iterator[psycopg.Connection]:
    """The application's own connection."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection
