"""Outer joins through the whole system, several of them over each other."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

VIEWS = {
    "mixed": "SELECT a.k, a.x, b.y, c.z FROM a LEFT JOIN b ON b.k = a.k AND a.x > 0"
    " RIGHT JOIN c ON c.k = b.k",
    "full_joins": "SELECT k, a.x, b.y, c.z FROM a FULL JOIN b USING (k) FULL JOIN c USING (k)",
    "risky": "SELECT a.k, b.y FROM a LEFT JOIN b ON b.k = a.k AND a.x / b.y > 0",
}
CHANGES = (
    # The only match goes, another one comes; pairs that never stood together would divide by zero.
    "DELETE FROM b WHERE k = 1; INSERT INTO b VALUES (2, 5); INSERT INTO a VALUES (4, 4);"
    " UPDATE a SET k = 3 WHERE k = 1; INSERT INTO b VALUES (1, 0)",
    # A row that comes and goes at once, NULL keys, equal rows.
    "INSERT INTO c VALUES (2, 9), (2, 9), (NULL, 1); DELETE FROM c WHERE z = 1;"
    " INSERT INTO a VALUES (NULL, 7), (2, 2), (2, 2); DELETE FROM b WHERE y <> 5;"
    " INSERT INTO b VALUES (4, 1), (4, 1), (NULL, 3)",
)


def test_outer_joins_follow_their_matches(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE a (k int, x int); CREATE TABLE b (k int, y int)")
    sql.execute("CREATE TABLE c (k int, z int)")
    sql.execute("INSERT INTO a VALUES (1, 6), (2, 1); INSERT INTO b VALUES (1, 3), (3, 4)")
    sql.execute("INSERT INTO c VALUES (1, 1), (3, 3)")
    for name, query in VIEWS.items():
        project.create_stream_table(name, query)
    stages = {name: project.explain(name).stages for name in VIEWS}
    assert {name: len(found) for name, found in stages.items()} == {
        "mixed": 1,
        "full_joins": 2,
        "risky": 1,
    }
    for found in stages.values():
        assert all("matched again" in stage.reason for stage in found)
    for change in CHANGES:
        with sql.transaction():
            sql.execute(change)
        for name in VIEWS:
            assert project.refresh(name).mode == "DIFFERENTIAL"
            assert_served(project, sql, name)
    for name in VIEWS:
        assert project.verify(name).equal
