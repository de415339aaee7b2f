"""Examples that failed once: on stream tables in one project, and on plans alone."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import headrace
from fuzz.example import read_script
from fuzz.plan_way import PlanWay
from fuzz.spark_way import SparkWay
from fuzz.ways import run_example
from tests.e2e.live_project import project, sql

__all__ = ["project", "sql"]

EXAMPLES = sorted((Path(__file__).parent / "examples").glob("*.sql"))


@pytest.mark.e2e
def test_examples(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    """Incrementally, as PostgreSQL says, and as Spark recomputes it."""
    # The same statement reads tables of other columns in each example.
    sql.prepare_threshold = None
    way = SparkWay(project, sql)
    for example in EXAMPLES:
        run_example(way, read_script(example.read_text(encoding="utf-8")))


@pytest.mark.postgres
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_plans_of_examples(plans: PlanWay, example: Path) -> None:
    run_example(plans, read_script(example.read_text(encoding="utf-8")))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_a_script_is_read_as_it_was_written(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    parts = [line for line in text.splitlines() if not line.startswith("-- about")]
    assert read_script(text).script.splitlines() == parts
