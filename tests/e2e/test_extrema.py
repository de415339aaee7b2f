"""MIN and MAX by rule: one Spark query a stage, a second one only where a group lost its own."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import headrace
from headrace.spark.run import Runner
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

QUERY = """
SELECT g, min(x) AS least, max(x) AS greatest, max(t COLLATE "C") AS t, min(f) AS f, max(d) AS d,
       min(n) FILTER (WHERE x > 0) AS n, count(*) AS rows
FROM a GROUP BY g HAVING min(x) < 100
"""
STEPS = (
    ("INSERT INTO a VALUES (1, 50, 'm', 1, '2024-01-01', 1), (9, 1, 'a', 0, NULL, 2)", 1),
    ("DELETE FROM a WHERE g = 1 AND x = 9", 1),
    ("DELETE FROM a WHERE g = 1 AND x = 1", 2),
    ("DELETE FROM a WHERE g = 2", 1),
    ("UPDATE a SET g = 2 WHERE g = 3 AND x = 3", 2),
    ("UPDATE a SET x = x - 1", 2),
    ("UPDATE a SET x = NULL WHERE g IS NULL", 1),
    ("BEGIN; DELETE FROM a WHERE x = 2; INSERT INTO a SELECT 3, 2, 'z', 2, NULL, 2; COMMIT", None),
    ("INSERT INTO a SELECT g, x, t, f, d, n FROM a", 1),
    ("DELETE FROM a WHERE ctid IN (SELECT min(ctid) FROM a GROUP BY g, x)", None),
    (
        "INSERT INTO a VALUES (4, 1, 'a', 'NaN'), (4, 1, 'b', 'NaN'), (4, 2, 'c', 0)",
        1,
    ),
    ("DELETE FROM a WHERE g = 4 AND t = 'c'", None),
    ("DELETE FROM a", 1),
    ("INSERT INTO a VALUES (NULL, 7, 'x', 7, '2024-07-07', 7)", 1),
)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were run on Spark and whose rows came back."""
    ran: list[str] = []
    collect = Runner.collect

    def counted(self: Runner, sql: str, *arguments: Any, **options: Any) -> Any:
        ran.append(sql)
        return collect(self, sql, *arguments, **options)

    monkeypatch.setattr(Runner, "collect", counted)
    return ran


@pytest.fixture
def rows(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE a (g int, x int, t text, f float8, d date, n numeric(8,2))")
    sql.execute(
        "INSERT INTO a SELECT nullif(i % 4, 0), i, chr(96 + i % 26), i / 2.0,"
        " date '2024-01-01' + i, i FROM generate_series(1, 20) i"
    )


def test_steps(
    project: headrace.Headrace, sql: psycopg.Connection, rows: None, queries: list[str]
) -> None:
    project.create_stream_table("v", QUERY)
    assert_served(project, sql, "v")
    for statement, expected in STEPS:
        sql.execute(statement)
        queries.clear()
        refresh = project.refresh("v")
        assert refresh.mode == "DIFFERENTIAL"
        assert_served(project, sql, "v")
        assert expected is None or len(queries) == expected, statement
    assert project.verify("v", source=True).equal


def test_large_changes_recompute_touched_groups(
    project: headrace.Headrace, sql: psycopg.Connection, rows: None, queries: list[str]
) -> None:
    project.create_stream_table("grouped", "SELECT x, min(n) AS n, max(f) AS f FROM a GROUP BY x")
    project.create_stream_table("single", "SELECT min(x) AS a, max(x) AS b, count(*) AS n FROM a")
    project.create_stream_table("floats", "SELECT sum(f) AS f, max(d) AS d FROM a")
    project.set("collect_rows", 3)
    for statement in (
        "UPDATE a SET n = n + 1 WHERE x > 5",
        "DELETE FROM a WHERE x IN (1, 2)",
        "INSERT INTO a SELECT g, x + 1, t, f, d, n FROM a",
    ):
        sql.execute(statement)
        for name in ("grouped", "single", "floats"):
            assert project.refresh(name).mode == "DIFFERENTIAL"
            assert_served(project, sql, name)
    for name in ("grouped", "single", "floats"):
        assert project.verify(name).equal


def test_nothing_is_computed_from_a_stale_group(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """The least value is 0 only for a group that the second query has yet to recompute."""
    sql.execute("CREATE TABLE a (g int, x int)")
    sql.execute("INSERT INTO a VALUES (1, 1), (1, 2), (2, 4)")
    project.create_stream_table(
        "v", "SELECT g, 12 / min(x) AS r, 8 / count(x) AS c FROM a GROUP BY g"
    )
    sql.execute("DELETE FROM a WHERE x = 1")
    assert project.refresh("v").mode == "DIFFERENTIAL"
    assert_served(project, sql, "v")
    assert project.verify("v").equal
