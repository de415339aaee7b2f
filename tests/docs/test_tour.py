"""The tour's example gives what the page shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace
from docs.generators.blocks import refreshed
from docs.generators.tour import follow
from tests.docs.pages import DOCS, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.e2e
def test_the_tour_shows_what_happens(dsn: str, tmp_path: Path, spark: SparkSession) -> None:
    with (
        headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr,
        psycopg.connect(dsn, autocommit=True) as sql,
    ):
        blocks = follow(hr, sql)
    text = read(DOCS / "tour.md")
    assert refreshed(text, blocks) == text, "run `.venv/bin/python docs/generate.py tour`"
