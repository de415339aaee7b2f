"""A user's mistakes: a HeadraceError with its code and a hint, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import headrace

pytestmark = pytest.mark.e2e

TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2), place point);
CREATE TABLE parent (id int);
CREATE TABLE child () INHERITS (parent);
CREATE VIEW seen AS SELECT 1 AS one;
"""
MISTAKES = [
    ("totals", "SELECT id FROM ordres", "unknown-table"),
    ("totals", "SELECT idd FROM orders", "unknown-column"),
    ("totals", "SELECT id FROM orders o1, orders o2", "ambiguous-column"),
    ("totals", "SELECT id FROM", "syntax-error"),
    ("totals", "SELECT id FROM orders; SELECT 1", "syntax-error"),
    ("totals", "SELECT id FROM orders FOR UPDATE", "unsupported-query"),
    ("totals", "SELECT id FROM orders TABLESAMPLE SYSTEM (10)", "unsupported-query"),
    ("totals", "SELECT id FROM orders LIMIT 1", "unsupported-query"),
    ("totals", "SELECT id, now() AS t FROM orders", "unsupported-function"),
    ("totals", "SELECT place FROM orders", "unsupported-type"),
    ("totals", "SELECT id FROM parent", "unsupported-source"),
    ("totals", "SELECT id, amount FROM orders GROUP BY customer", "invalid-query"),
    ("orders", "SELECT id FROM orders", "name-exists"),
    ("nowhere.totals", "SELECT id FROM orders", "invalid-name"),
    ("headrace.totals", "SELECT id FROM orders", "invalid-name"),
    ("a b", "SELECT id FROM orders", "invalid-name"),
    ("x" * 64, "SELECT id FROM orders", "invalid-name"),
]


def left_behind(sql: psycopg.Connection, home: Path) -> tuple[object, ...]:
    tables = sql.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
    ).fetchall()
    triggers = sql.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal").fetchall()
    capture = sql.execute("SELECT to_regnamespace('headrace_capture')").fetchall()
    store = Path(home, "store")
    logs = sorted(path.name for path in store.iterdir()) if store.exists() else []
    return tables, triggers, capture, logs


def test_mistakes_leave_nothing_behind(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute(TABLES)
    before = left_behind(sql, project.home)
    for name, query, code in MISTAKES:
        with pytest.raises(headrace.UserError) as caught:
            project.create_stream_table(name, query)
        assert caught.value.code == code, (query, caught.value)
        assert project.status() == ()
        assert left_behind(sql, project.home) == before, query


def test_options_and_names_are_checked(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute(TABLES)
    calls = [
        lambda: project.create_stream_table("t", "SELECT id FROM orders", refresh_mode="MAYBE"),
        lambda: project.create_stream_table("t", "SELECT id FROM orders", colour="red"),
        lambda: project.set("no_such_setting", 1),
        lambda: project.set("max_buffer_mb", -1),
    ]
    for call in calls:
        with pytest.raises(headrace.UserError) as caught:
            call()
        assert caught.value.code == "invalid-option"
    for unknown in (project.refresh, project.verify, project.drop_stream_table, project.history):
        with pytest.raises(headrace.UserError) as caught:
            unknown("nothing")
        assert caught.value.code == "unknown-stream-table"


def test_a_failing_first_refresh_leaves_nothing_behind(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute(TABLES)
    sql.execute("INSERT INTO orders VALUES (1, 0, 1)")
    before = left_behind(sql, project.home)
    with pytest.raises(headrace.UserError) as caught:
        project.create_stream_table("ratios", "SELECT id / customer AS r FROM orders")
    assert caught.value.code == "query-failed"
    assert left_behind(sql, project.home) == before


def test_a_role_without_rights(
    dsn: str, sql: psycopg.Connection, tmp_path: Path, spark: object
) -> None:
    sql.execute(TABLES)
    sql.execute("DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN")
    database = sql.info.dbname
    sql.execute(
        f'GRANT CREATE ON DATABASE "{database}" TO reader; GRANT ALL ON SCHEMA public TO reader'
    )
    restricted = dsn.replace("postgres@", "reader@", 1)
    assert restricted != dsn
    try:
        with headrace.connect(dsn=restricted, home=tmp_path, spark=spark) as hr:
            with pytest.raises(headrace.UserError) as caught:
                hr.create_stream_table("totals", "SELECT id FROM orders")
            assert caught.value.code == "permission-denied"
            assert "GRANT SELECT" in (caught.value.hint or "")
            sql.execute("GRANT SELECT ON orders TO reader")
            with pytest.raises(headrace.UserError) as caught:
                hr.create_stream_table("totals", "SELECT id FROM orders")
            assert caught.value.code == "capture-not-set-up"
            assert hr.status() == ()
            # The hint is the whole script for the DBA.
            sql.execute((caught.value.hint or "").split("\n", 1)[1])
            hr.create_stream_table("totals", "SELECT id FROM orders")
            sql.execute("INSERT INTO orders VALUES (1, 1, 1)")
            hr.refresh("totals")
            assert sql.execute("TABLE totals").fetchall() == [(1,)]
    finally:
        sql.execute("DROP OWNED BY reader CASCADE; DROP ROLE reader")


def test_wrong_addresses(tmp_path: Path) -> None:
    cases = [("postgresql://[", "invalid-dsn"), ("host=/nonexistent-folder", "server-unreachable")]
    for address, code in cases:
        with pytest.raises(headrace.HeadraceError) as caught:
            headrace.connect(dsn=address, home=tmp_path)
        assert caught.value.code == code


def test_a_full_disk_at_the_store(
    dsn: str, sql: psycopg.Connection, tmp_path: Path, spark: object
) -> None:
    sql.execute(TABLES)
    sql.execute("INSERT INTO orders SELECT i, i, i FROM generate_series(1, 10) i")
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark, store="/dev/full/store") as hr:
        with pytest.raises(headrace.Unavailable) as caught:
            hr.create_stream_table("totals", "SELECT id FROM orders")
        assert caught.value.code in ("store-full", "store-unreachable")
        assert hr.status() == ()
    triggers = sql.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal").fetchall()
    assert triggers == []
