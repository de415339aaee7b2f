"""Random data × random batches × random views: exact by every oracle, and incremental."""

from __future__ import annotations

from random import Random

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served
from tests.e2e.views import SCHEMA, Views, change, insert, layers, random_rows

pytestmark = pytest.mark.e2e
VIEWS, BATCHES = 7, 3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_views(project: headrace.Headrace, sql: psycopg.Connection, seed: int) -> None:
    random = Random(seed)
    sql.execute(SCHEMA)
    insert(sql, "a", random_rows(random, "a", 25))
    insert(sql, "c", random_rows(random, "c", 12))
    queries = {}
    for number in range(VIEWS):
        name = f"v{number}"
        exact = number % 2 == 1
        queries[name] = Views(random, joined=random.random() < 0.5, exact=exact).query()
        project.create_stream_table(name, queries[name])
        assert_served(project, sql, name)
    for _ in range(BATCHES):
        change(random, sql)
        for name in queries:
            refresh = project.refresh(name)
            assert refresh.mode in ("DIFFERENTIAL", "SKIPPED")
            assert_served(project, sql, name)
    for name in queries:
        receipt = project.verify(name)
        assert receipt.equal, receipt.detail


@pytest.mark.parametrize("seed", [4, 5])
def test_layers(project: headrace.Headrace, sql: psycopg.Connection, seed: int) -> None:
    """One refresh brings four layers along, in small steps and in one big step."""
    random = Random(seed)
    sql.execute(SCHEMA)
    insert(sql, "a", random_rows(random, "a", 20))
    insert(sql, "c", random_rows(random, "c", 8))
    tables = layers(random)
    for name, query in tables:
        project.create_stream_table(name, query)
    for _ in range(3):
        change(random, sql)
        assert project.refresh("l4").mode in ("DIFFERENTIAL", "SKIPPED")
        for name, _query in tables:
            assert_served(project, sql, name)
    for _ in range(3):
        change(random, sql)
    assert project.refresh("l4").mode in ("DIFFERENTIAL", "SKIPPED")
    for name, _query in tables:
        assert_served(project, sql, name)
        receipt = project.verify(name)
        assert receipt.equal, receipt.detail


def test_small_steps_and_one_big_step_agree(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    random = Random(11)
    sql.execute(SCHEMA)
    insert(sql, "a", random_rows(random, "a", 20))
    insert(sql, "c", random_rows(random, "c", 10))
    query = (
        "SELECT a.g, count(*) AS n, sum(a.x * c.y) AS s, avg(c.m) AS m, min(c.m) AS least"
        " FROM a JOIN c ON a.g = c.g GROUP BY a.g"
    )
    project.create_stream_table("small", query)
    project.create_stream_table("big", query)
    for _ in range(5):
        change(random, sql)
        assert project.refresh("small").mode in ("DIFFERENTIAL", "SKIPPED")
        assert_served(project, sql, "small")
    assert project.refresh("big").mode == "DIFFERENTIAL"
    assert_served(project, sql, "big")
    assert project.verify("big", source=True).equal
