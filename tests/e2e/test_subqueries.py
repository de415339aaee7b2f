"""Queries inside expressions through the whole system: semi and anti joins, values, LATERAL."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

VIEWS = {
    "buyers": "SELECT c.k FROM c WHERE EXISTS (SELECT 1 FROM o WHERE o.k = c.k)"
    " AND c.x NOT IN (SELECT o.x FROM o WHERE o.k <> c.k)",
    "marked": "SELECT c.k, c.x IN (SELECT x FROM o) AS known, CASE WHEN NOT EXISTS"
    " (SELECT 1 FROM o WHERE o.k = c.k) THEN 'none' END AS note FROM c",
    "valued": "SELECT c.k, (SELECT coalesce(sum(o.x), 0) + 7 FROM o WHERE o.k = c.k) AS s,"
    " (SELECT count(*) FROM o WHERE o.x < c.x) AS n FROM c",
    "only_rows": "SELECT o.x, (SELECT c.x FROM c WHERE c.k = o.k) AS y FROM o",
    "best": "SELECT c.k, q.x FROM c LEFT JOIN LATERAL"
    " (SELECT o.x FROM o WHERE o.k = c.k ORDER BY o.x DESC NULLS LAST LIMIT 2) q ON true",
    "above": "SELECT k, count(*) AS n FROM o GROUP BY k"
    " HAVING count(*) >= (SELECT avg(m) FROM (SELECT count(*) AS m FROM o GROUP BY k) p)",
}
CHANGES = (
    # Inner and outer rows go at once; a NULL comes into NOT IN; equal rows.
    "DELETE FROM o WHERE k = 1; DELETE FROM c WHERE k = 2; INSERT INTO o VALUES (3, NULL), (4, 4),"
    " (4, 4); INSERT INTO c VALUES (4, 4), (5, NULL)",
    "DELETE FROM o WHERE x IS NULL; UPDATE o SET k = 5 WHERE x = 4; UPDATE c SET x = 3",
    "DELETE FROM o; DELETE FROM c WHERE k > 3",
)


def test_subqueries_follow_both_sides(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE c (k int, x int); CREATE TABLE o (k int, x int)")
    sql.execute("INSERT INTO c VALUES (1, 1), (2, 2), (3, NULL)")
    sql.execute("INSERT INTO o VALUES (1, 1), (1, 2), (2, 5), (NULL, 3)")
    for name, query in VIEWS.items():
        project.create_stream_table(name, query)
    for change in CHANGES:
        with sql.transaction():
            sql.execute(change)
        for name in VIEWS:
            assert project.refresh(name).mode == "DIFFERENTIAL"
            assert_served(project, sql, name)
    for name in VIEWS:
        assert project.verify(name).equal


def test_a_second_row_is_an_error_where_the_value_is_asked_for(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE c (k int, x int); CREATE TABLE o (k int, x int)")
    sql.execute("INSERT INTO c VALUES (1, 1), (2, 2); INSERT INTO o VALUES (1, 7), (2, 8)")
    query = "SELECT k, CASE WHEN k = 1 THEN (SELECT o.x FROM o WHERE o.k = c.k) END AS v FROM c"
    project.create_stream_table("v", query)
    sql.execute("INSERT INTO o VALUES (2, 9)")
    project.refresh("v")
    assert_served(project, sql, "v")
    sql.execute("INSERT INTO o VALUES (1, 9)")
    with pytest.raises(headrace.UserError) as raised:
        project.refresh("v")
    assert raised.value.code == "query-failed"
    sql.execute("DELETE FROM o WHERE x = 9")
    assert project.refresh("v").mode == "DIFFERENTIAL"
    assert_served(project, sql, "v")
