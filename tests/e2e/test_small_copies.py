"""Small tables are copied in memory, large ones by executors: the same rows either way."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from headrace.ingest.small import SMALL_BYTES
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("most", [0, SMALL_BYTES])
def test_both_ways_of_copying_give_the_same(
    project: headrace.Headrace,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
) -> None:
    monkeypatch.setattr("headrace.ingest.small.SMALL_BYTES", most)
    sql.execute(
        "CREATE TABLE t (id int, name text, price numeric(10,2), at timestamptz, extra json)"
    )
    sql.execute(
        "INSERT INTO t SELECT i % 4, CASE WHEN i % 3 > 0 THEN 'x' || i % 5 END, i / 4.0,"
        " TIMESTAMPTZ '2024-01-01' + i * interval '1 hour', '{}' FROM generate_series(1, 200) i"
    )
    sql.execute("INSERT INTO t SELECT * FROM t WHERE id = 1")
    sql.execute("CREATE TABLE nothing (id int)")
    project.create_stream_table("rows", "SELECT id, name, price, at FROM t")
    project.create_stream_table("none", "SELECT id FROM nothing")
    assert_served(project, sql, "rows")
    # Rewritten, so that both are copied again, as the difference.
    sql.execute("ALTER TABLE t ALTER COLUMN id TYPE int USING id + 1")
    sql.execute("DELETE FROM t WHERE id = 2")
    sql.execute("TRUNCATE nothing")
    assert project.refresh("rows").mode == "DIFFERENTIAL"
    assert_served(project, sql, "rows")
    assert project.verify("rows", source=True).equal
    assert sql.execute("SELECT * FROM none").fetchall() == []
