"""Queries inside expressions: as written and as lowered, the rows that PostgreSQL gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings

from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import Scan
from headrace.query import bind
from tests.forms import examples
from tests.query import sharing
from tests.query.subqueries import TABLES, Small, queries
from tests.query.unlowered import unlowered

pytestmark = pytest.mark.postgres

ROWS = {
    "a": [(1, 1), (1, 1), (1, 2), (2, None), (None, 1), (0, 0), (2, 2)],
    "b": [(1, 2), (2, 1), (2, 1), (None, None), (3, -1)],
    "c": [(1, None), (1, 1), (2, 0), (-1, 2)],
}


@pytest.fixture(scope="module")
def small(server: Any) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA subqueries")
        connection.execute("SET search_path = subqueries")
        for table in TABLES:
            connection.execute(f"CREATE TABLE {table} (k int, x int)")
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s)", ROWS[table])
        yield connection
        connection.execute("DROP SCHEMA subqueries CASCADE")


def read(scan: Scan) -> Bag:
    places = [("c1", "c2").index(physical) for physical, _ in scan.fields]
    return Counter(tuple(row[i] for i in places) for row in ROWS[scan.relation])


@settings(max_examples=examples(250), deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries())
def test_the_rows_are_postgres_own(small: psycopg.Connection[Any], query: str) -> None:
    assert_postgres_own(small, query)


def assert_postgres_own(small: psycopg.Connection[Any], query: str) -> None:
    """As written and as lowered the query has the rows that PostgreSQL gives."""
    expected = Counter(small.execute(query).fetchall())
    bound = bind(query, Small())
    assert net(evaluate(bound.written, read)) == expected
    assert net(evaluate(bound.plan, read)) == expected
    assert not list(unlowered(bound.plan))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM a WHERE x IN (VALUES ((SELECT max(k) FROM b)))",
        "SELECT k FROM a WHERE x NOT IN (VALUES ((SELECT min(k) FROM b)), (7), ((SELECT 3)))",
        "SELECT v.* FROM (VALUES (1, (SELECT sum(x) FROM b)), (2, NULL)) AS v (n, y)",
        "SELECT a.k, v.* FROM a, (VALUES ((SELECT count(*) FROM b)), (1)) AS v (n)",
        "SELECT a.k, v.n FROM a, LATERAL (VALUES ((SELECT max(x) FROM b WHERE b.k = a.k)), (a.x))"
        " AS v (n)",
        "SELECT k, x IN (VALUES ((SELECT max(x) FROM b WHERE b.k = a.k)), (a.k)) AS v FROM a",
        "SELECT k FROM a WHERE EXISTS (SELECT FROM (VALUES ((SELECT min(x) FROM b WHERE b.k = a.k))"
        ") AS v (n) WHERE n = a.x)",
        "VALUES ((SELECT max(k) FROM a), EXISTS (SELECT FROM b WHERE k = 9)), (1, true)",
    ],
)
def test_queries_in_rows_that_are_spelled_out(small: psycopg.Connection[Any], query: str) -> None:
    assert_postgres_own(small, query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, x FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k ORDER BY b.x)",
        "SELECT k, x FROM a WHERE EXISTS (SELECT x FROM b WHERE b.k = a.k ORDER BY 1 LIMIT 1)",
        "SELECT k, x FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k FETCH FIRST ROW ONLY)",
        "SELECT k, x FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k LIMIT 0)",
        "SELECT k, x FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k OFFSET 0)",
        "SELECT k, x FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k OFFSET 1)",
        "SELECT k, x FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k >= a.k OFFSET 2 LIMIT 5)",
        "SELECT k, EXISTS (SELECT x FROM b WHERE b.k >= a.k ORDER BY x OFFSET 1) AS e FROM a",
        "SELECT k, EXISTS (SELECT DISTINCT x FROM b WHERE b.k >= a.k OFFSET 1) AS e FROM a",
        "SELECT k, EXISTS (SELECT k FROM b WHERE b.x < a.x GROUP BY k OFFSET 1) AS e FROM a",
        "SELECT k, EXISTS (SELECT max(x) FROM b WHERE b.x < a.x OFFSET 1) AS e FROM a",
        "SELECT k, EXISTS (SELECT k FROM b WHERE b.x < a.x UNION SELECT 5 OFFSET 1) AS e FROM a",
        "SELECT k, EXISTS (WITH q AS (TABLE b) SELECT FROM q WHERE q.k = a.k OFFSET 1) AS e FROM a",
    ],
)
def test_exists_asks_for_no_order_and_counts_behind_an_offset(
    small: psycopg.Connection[Any], query: str
) -> None:
    assert_postgres_own(small, query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, (SELECT sum(b.x) FILTER (WHERE a.k > 1) FROM b) AS v FROM a",
        "SELECT k, (SELECT sum(a.x) FILTER (WHERE b.k > 1) FROM b) AS v FROM a",
        "SELECT k, (SELECT count(*) FILTER (WHERE b.k > a.k) FROM b) AS v FROM a",
        "SELECT k, (SELECT count(DISTINCT a.k) FILTER (WHERE b.x > 1) FROM b) AS v FROM a",
        "SELECT k, (SELECT string_agg('y', ',' ORDER BY a.k, b.x) FROM b) AS v FROM a",
        "SELECT k, (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a.x)"
        " FILTER (WHERE b.k > 1) FROM b) AS v FROM a",
        "SELECT k, (SELECT max(n) FROM (SELECT count(*) FILTER (WHERE a.k > 1) OVER () AS n"
        " FROM b) AS q) AS v FROM a",
    ],
)
def test_aggregates_that_read_the_enclosing_row_beside_their_own(
    small: psycopg.Connection[Any], query: str
) -> None:
    assert_postgres_own(small, query)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(query=sharing.queries())
def test_the_rows_of_shared_parts_are_postgres_own(
    small: psycopg.Connection[Any], query: str
) -> None:
    assert_postgres_own(small, query)
