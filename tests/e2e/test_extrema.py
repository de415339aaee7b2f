"""MIN and MAX by rule: one Spark query a stage, a second one only where a group lost its own."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import headrace
from headrace.spark.run import Runner
from tests.e2e.oracle import assert_followed, assert_served

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
            assert_followed(project.refresh(name))
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


ADDED = "rows that came are added to touched groups; none can lose its MIN or MAX"
ANY = "changes are added to touched groups; one that loses its MIN or MAX is recomputed"
RECOMPUTED = "touched groups are recomputed"


def test_rows_that_only_come(
    project: headrace.Headrace, sql: psycopg.Connection, rows: None, queries: list[str]
) -> None:
    """Declared, or found in a large change, they are merged without a look for lost rows."""
    sql.execute("CREATE TABLE e (a int, b int)")
    sql.execute("INSERT INTO e VALUES (1, 2), (2, 3)")
    project.create_stream_table("v", QUERY, append_only=True)
    project.create_stream_table("first", "SELECT x, t FROM a ORDER BY x DESC, t LIMIT 3")
    project.create_stream_table("least", "SELECT a, min(b) AS b FROM e GROUP BY a")
    project.create_stream_table(
        "reach",
        "WITH RECURSIVE r AS (SELECT a, b FROM e UNION SELECT r.a, e.b FROM r JOIN e ON e.a = r.b)"
        " SELECT a, b FROM r",
    )
    limit = project.settings()["collect_rows"]

    def refreshed(name: str, statement: str, *, large: bool = False) -> str:
        project.set("collect_rows", 3 if large else limit)
        sql.execute(statement)
        queries.clear()
        refresh = project.refresh(name)
        assert refresh.mode == "DIFFERENTIAL"
        assert_served(project, sql, name)
        return refresh.stages[-1].reason

    assert refreshed("v", "INSERT INTO a VALUES (1, -5, 'm', 1), (9, 1, 'a', 0)") == ADDED
    assert len(queries) == 1 and "stale" not in queries[0]
    more = "INSERT INTO a SELECT g, x - 1, t, f, d, n FROM a"
    assert refreshed("v", more, large=True) == ADDED
    assert ADDED in str(project.explain("v"))
    assert "these cannot run short" in refreshed("first", "INSERT INTO a VALUES (1, 99, 'y')")
    assert refreshed("v", "DELETE FROM a WHERE x < 0") == ANY
    assert ADDED not in str(project.explain("v"))
    assert refreshed("v", "INSERT INTO a VALUES (1, -7, 'n', 2)") == ANY
    assert project.verify("v", source=True).equal

    some = "INSERT INTO e SELECT 3, i FROM generate_series(1, 9) i"
    assert refreshed("least", some, large=True) == ADDED, "nobody declared it"
    assert refreshed("least", "UPDATE e SET b = b + 10 WHERE a = 3", large=True) == RECOMPUTED
    assert refreshed("least", "INSERT INTO e VALUES (3, 0)") == ANY
    refreshed("reach", "INSERT INTO e VALUES (2, 3)")
    refreshed("reach", "INSERT INTO e VALUES (1, 3)")
    assert len(queries) == 1, "what is reached already leads to nothing, and nothing was lost"
    refreshed("reach", "DELETE FROM e WHERE (a, b) = (1, 3)")
    assert len(queries) > 1
    assert project.verify("reach", source=True).equal
