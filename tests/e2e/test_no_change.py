"""Invariant 4: no change, no work. And a change that matters to nobody is no work either."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e


def everything(hr: headrace.Headrace, sql: psycopg.Connection) -> tuple[object, ...]:
    """All that a tick might move: the catalog, every file of the store, the served table."""
    files = sorted(
        (str(path), path.stat().st_mtime_ns)
        for path in Path(hr.home, "store").rglob("*")
        if path.is_file()
    )
    status = sql.execute("SELECT name, epoch, as_of, last_refresh_at FROM headrace.status")
    rows = sql.execute("SELECT ctid, xmin FROM totals ORDER BY ctid").fetchall()
    sequence = sql.execute("SELECT last_value FROM headrace.epochs_seq").fetchall()
    state = hr._engine.catalog.state()
    return files, status.fetchall(), rows, sequence, state, hr.history()


def test_a_tick_without_changes_does_nothing(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 3, i FROM generate_series(1, 10) i")
    project.create_stream_table(
        "totals", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    )
    before, jobs = everything(project, sql), project._engine.runner.jobs
    refresh = project.refresh("totals")
    assert (refresh.mode, refresh.spark_jobs) == ("SKIPPED", 0)
    assert project._engine.runner.jobs == jobs
    assert everything(project, sql) == before


def test_a_rolled_back_change_is_no_change(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    project.create_stream_table(
        "totals", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    )
    with sql.transaction() as transaction:
        sql.execute("INSERT INTO orders VALUES (1, 1, 1)")
        raise psycopg.Rollback(transaction)
    assert project.refresh("totals").mode == "SKIPPED"


def test_an_update_of_an_unused_column_starts_no_spark_job(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int, note text)")
    sql.execute("INSERT INTO orders SELECT i, i % 3, i FROM generate_series(1, 10) i")
    project.create_stream_table(
        "totals", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    )
    sql.execute("UPDATE orders SET note = 'seen'")
    refresh = project.refresh("totals")
    assert (refresh.rows_inserted, refresh.rows_deleted, refresh.spark_jobs) == (0, 0, 0)
    assert project.refresh("totals").mode == "SKIPPED"
    sql.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    refresh = project.refresh("totals")
    assert (refresh.mode, refresh.rows_inserted, refresh.rows_deleted) == ("DIFFERENTIAL", 1, 1)
    assert_served(project, sql, "totals")


def test_a_group_whose_state_changes_unseen_is_not_served_again(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders VALUES (1, 1, 5), (2, 1, 5)")
    project.create_stream_table(
        "totals", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    )
    place = sql.execute("SELECT ctid, xmin FROM totals").fetchall()
    sql.execute("INSERT INTO orders VALUES (3, 1, 0)")
    refresh = project.refresh("totals")
    assert (refresh.mode, refresh.rows_inserted, refresh.rows_deleted) == ("DIFFERENTIAL", 0, 0)
    assert sql.execute("SELECT ctid, xmin FROM totals").fetchall() == place
    sql.execute("DELETE FROM orders WHERE id < 3")
    project.refresh("totals")
    assert_served(project, sql, "totals")
    assert sql.execute("TABLE totals").fetchall() == [(1, 0)]
