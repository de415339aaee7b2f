"""Numerics that differ in their last digit, through capture, Spark and publishing."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_followed, assert_served

pytestmark = pytest.mark.e2e

QUERIES: dict[str, str] = {
    "at_most": "SELECT id FROM s WHERE m <= n",
    "less": "SELECT id FROM s WHERE m < n",
    "equal": "SELECT id FROM s WHERE m = o",
    "joined": "SELECT x.id, y.id AS other FROM s x JOIN s y ON x.m = y.o",
    "padded": "SELECT x.id, y.id AS other FROM s x LEFT JOIN s y ON x.n = y.o AND x.id <> y.id",
    "among": "SELECT id FROM s WHERE o IN (SELECT n FROM s)",
    "alone": "SELECT id FROM s x WHERE NOT EXISTS (SELECT FROM s y WHERE y.m = x.n)",
    "sums": "SELECT g FROM s GROUP BY g HAVING sum(a) <= 0.1 * sum(b)",
    "halves": "SELECT g, sum(k) AS k FROM s GROUP BY g HAVING sum(k) <= 0.5 * sum(k) + 9.4",
    "either": "SELECT g, coalesce(sum(a), max(n), 0) AS x, greatest(sum(k::bigint), min(n)) AS y"
    " FROM s WHERE id <> 5 GROUP BY g",
    "both": "SELECT sum(b) AS x FROM s GROUP BY g UNION SELECT n FROM s",
    "filled": "SELECT id, coalesce(p, 0) AS p FROM s",
    "signs": "SELECT id, - m AS x, abs(o) AS y, o * 3 AS z FROM s",
}
LONG = "12345678901234567890123456789012345"
CHANGES = (
    "INSERT INTO s VALUES (11, 1, 1.00, 10.00, 18, 1.001, 1.0005, 1.001),"
    f" (12, 2, 0, 0, 0, -{LONG}.678, -1, -1.0000000001)",
    "UPDATE s SET b = 9.95, n = n + 0.000000000000000001, p = 1e-30 WHERE id IN (1, 2)",
    f"UPDATE s SET m = {LONG}.001, o = 1.0010000001 WHERE id IN (3, 11)",
    "DELETE FROM s WHERE id IN (2, 12)",
)


def test_the_last_digit_counts(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute(
        "CREATE TABLE s (id int PRIMARY KEY, g int, a numeric(7,2), b numeric(7,2), k int,"
        " m numeric(38,3), n numeric, o numeric(38,10), p numeric(38,30))"
    )
    sql.execute(
        "INSERT INTO s VALUES (1, 1, 1.00, 9.95, 1, 1.000, 1, 1),"
        " (2, 2, 1.00, 10.01, 19, 1.000, 0.9999, 0.9999999999),"
        " (3, 2, 0, 0, 0, -1.001, -1.0005, -1.001), (4, 3, NULL, 1, 9, NULL, NULL, NULL),"
        f" (5, 3, 1, 10, 10, {LONG}.999, 99999999999999999999.999999999999999999, 1)"
    )
    project.create_stream_tables(
        {name: {"query": query, "refresh_mode": "DIFFERENTIAL"} for name, query in QUERIES.items()}
    )
    for change in ("", *CHANGES):
        if change:
            sql.execute(change)
        for name in QUERIES:
            if change:
                assert_followed(project.refresh(name))
            assert_served(project, sql, name)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT coalesce(sum(m), max(n)) AS x FROM s",
        "SELECT CASE WHEN count(*) > 0 THEN sum(m) ELSE max(n) END AS x FROM s",
        "SELECT greatest(sum(m), max(n)) AS x FROM s",
        "SELECT sum(m) AS x FROM s UNION SELECT n FROM s",
    ],
)
def test_a_sum_too_large_for_the_common_type_fails(
    project: headrace.Headrace, sql: psycopg.Connection, query: str
) -> None:
    """Beside the 18 digits after the point of a plain numeric, 20 are left before it."""
    sql.execute("CREATE TABLE s (id int PRIMARY KEY, m numeric(20), n numeric)")
    sql.execute("INSERT INTO s VALUES (1, 99999999999999999999, 1.5)")
    project.create_stream_table("st", query)
    assert_served(project, sql, "st")
    sql.execute("INSERT INTO s VALUES (2, 1, 1.5)")
    with pytest.raises(headrace.UserError) as failure:
        project.refresh("st")
    assert failure.value.code == "query-failed"
    sql.execute("DELETE FROM s WHERE id = 1")
    assert project.refresh("st").mode != "FULL"
    assert_served(project, sql, "st")
