"""Windows, DISTINCT ON and LIMIT kept fresh: as PostgreSQL answers them after every change."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import headrace
from headrace.spark.run import Runner
from tests.e2e.oracle import assert_followed, assert_served

pytestmark = pytest.mark.e2e

VIEWS = {
    "ranked": "SELECT id, g, rank() OVER (PARTITION BY g ORDER BY x DESC) AS r,"
    " sum(n) OVER (PARTITION BY g ORDER BY x, id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s,"
    " count(*) OVER (PARTITION BY x) AS same FROM a",
    "totals": "SELECT g, sum(x) AS s, sum(sum(x)) OVER (ORDER BY g) AS running FROM a GROUP BY g",
    "best": "SELECT DISTINCT ON (g) g, id, x FROM a ORDER BY g, x DESC NULLS LAST, id",
    "first": "SELECT id, x FROM a ORDER BY x DESC NULLS LAST, id LIMIT 3",
    "leading": "SELECT id, g, r FROM (SELECT id, g, row_number() OVER"
    " (PARTITION BY g ORDER BY x DESC, id) AS r FROM a) AS q WHERE r <= 2",
    "small": "SELECT g, id FROM (SELECT DISTINCT ON (g) g, id, x FROM a ORDER BY g, x, id) AS q"
    " WHERE x < 2",
    "even": "SELECT id FROM (SELECT id, g FROM a ORDER BY x DESC, id LIMIT 5) AS q WHERE g = 2",
}
STEPS = (
    "INSERT INTO a VALUES (21, 1, 100, 1.25), (22, NULL, -5, NULL), (23, 2, -5, 1)",
    # An update of the partition key touches two partitions.
    "UPDATE a SET g = 2 WHERE g = 1 AND x > 5",
    "DELETE FROM a WHERE x IN (100, -5, 6)",
)


@pytest.fixture
def rows(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE a (id int PRIMARY KEY, g int, x int, n numeric(8,2))")
    sql.execute("INSERT INTO a SELECT i, i % 4, i % 7, i / 4.0 FROM generate_series(1, 20) i")


def test_every_change(project: headrace.Headrace, sql: psycopg.Connection, rows: None) -> None:
    project.create_stream_tables(VIEWS)
    for statement in STEPS:
        sql.execute(statement)
        for name in VIEWS:
            assert_followed(project.refresh(name))
            assert_served(project, sql, name)
    for name in VIEWS:
        assert project.verify(name).equal, name


def test_only_what_is_touched_is_computed(
    project: headrace.Headrace,
    sql: psycopg.Connection,
    rows: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What did not change is not written, and first rows are recomputed only if they run short."""
    ran: list[str] = []
    collect = Runner.collect

    def counted(self: Runner, text: str, *arguments: Any, **options: Any) -> Any:
        ran.append(text)
        return collect(self, text, *arguments, **options)

    monkeypatch.setattr(Runner, "collect", counted)
    project.create_stream_tables({name: VIEWS[name] for name in ("ranked", "first")})
    for statement, changes, queries in (
        ("INSERT INTO a VALUES (30, 7, -1, 0)", {"ranked": (1, 0), "first": (0, 0)}, 1),
        ("INSERT INTO a VALUES (31, 7, 9, 0)", {"first": (1, 1)}, 1),
        ("DELETE FROM a WHERE id = 31", {"first": (1, 1)}, 2),
    ):
        sql.execute(statement)
        for name, changed in changes.items():
            ran.clear()
            refresh = project.refresh(name)
            assert refresh.mode == "DIFFERENTIAL"
            assert (refresh.rows_inserted, refresh.rows_deleted) == changed, statement
            assert_served(project, sql, name)
        assert len(ran) == queries, statement


def test_what_explain_says(project: headrace.Headrace, rows: None) -> None:
    def reasons(query: str) -> list[str]:
        return [stage.reason for stage in project.explain(query=query).stages]

    assert reasons(VIEWS["ranked"]) == ["touched partitions are recomputed"] * 2
    assert reasons(VIEWS["first"]) == [
        "changes are merged with the first rows kept; if these run short, recomputed"
    ]
    assert reasons("SELECT g FROM a ORDER BY id LIMIT 2 OFFSET 1") == [
        "the first rows are recomputed"
    ]
    assert reasons(VIEWS["totals"])[-1] == "the whole window is recomputed: it has no PARTITION BY"
    shown = str(project.explain(query="SELECT id FROM a ORDER BY x LIMIT 1"))
    assert "ties by" in shown
    assert "notice: Where ORDER BY leaves rows equal" in shown
