"""Invariant 4: no change, no work. And a change that matters to nobody is no work either."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.errors import UserError
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


WIDE = "CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int, note text)"
TOTALS = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"


def shown(hr: headrace.Headrace, sql: psycopg.Connection) -> tuple[object, ...]:
    """All that a refresh might move of stream tables, for those who read or watch them."""
    status = sql.execute("SELECT name, epoch, as_of, last_refresh_at FROM headrace.status")
    rows = sql.execute("SELECT ctid, xmin FROM totals ORDER BY ctid").fetchall()
    return status.fetchall(), rows, hr.history()


@pytest.fixture(params=["trigger", "wal"])
def wide(
    request: pytest.FixtureRequest, project: headrace.Headrace, sql: psycopg.Connection
) -> headrace.Headrace:
    """A table that does not read all columns of its source, captured in each of the modes."""
    project.set("cdc_mode", request.param)
    sql.execute(WIDE)
    sql.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
    sql.execute("INSERT INTO orders SELECT i, i % 3, i FROM generate_series(1, 10) i")
    project.create_stream_table("totals", TOTALS)
    while project._engine.catalog.state().sources[0].mode != request.param.upper():
        sql.execute("UPDATE orders SET amount = amount + 1")
        project.refresh("totals")
    return project


def test_an_update_of_columns_that_nobody_reads_moves_nothing(
    wide: headrace.Headrace, sql: psycopg.Connection
) -> None:
    before, jobs = shown(wide, sql), wide._engine.runner.jobs
    sql.execute("LISTEN headrace_published")
    sql.execute("UPDATE orders SET note = 'seen'")
    refresh = wide.refresh("totals")
    assert (refresh.mode, refresh.reason) == ("SKIPPED", "no column that it reads changed")
    assert wide._engine.runner.jobs == jobs
    assert shown(wide, sql) == before
    assert list(sql.notifies(timeout=0)) == []
    # It is taken in all the same: it is not looked at again.
    (status,) = wide.status()
    assert status.lag_own == timedelta(0)
    assert wide.refresh("totals").reason == "no input changed"
    sql.execute("UPDATE orders SET note = 'again', amount = amount + 1 WHERE id = 1")
    refresh = wide.refresh("totals")
    assert (refresh.mode, refresh.rows_inserted, refresh.rows_deleted) == ("DIFFERENTIAL", 1, 1)
    assert_served(wide, sql, "totals")
    assert wide.verify("totals", source=True).equal


def test_rows_that_differ_only_in_columns_that_nobody_reads_do_not_blow_a_fuse(
    wide: headrace.Headrace, sql: psycopg.Connection
) -> None:
    wide.alter_stream_table("totals", max_change_rows=2)
    sql.execute("UPDATE orders SET note = 'seen'")
    sql.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    assert wide.refresh("totals").mode == "DIFFERENTIAL"
    assert_served(wide, sql, "totals")
    sql.execute("UPDATE orders SET note = 'again', amount = amount + 1 WHERE id < 3")
    with pytest.raises(UserError) as raised:
        wide.refresh("totals")
    assert raised.value.code == "change-too-large"
    assert "4 changed rows" in raised.value.message


def test_a_large_update_of_columns_that_nobody_reads_moves_nothing(
    wide: headrace.Headrace, sql: psycopg.Connection
) -> None:
    wide.set("collect_rows", 5)
    wide.alter_stream_table("totals", max_change_rows=2)
    before = shown(wide, sql)
    sql.execute("UPDATE orders SET note = 'seen'")
    assert wide.refresh("totals").mode == "SKIPPED"
    assert shown(wide, sql) == before
    sql.execute("UPDATE orders SET note = 'again', amount = amount + 1000")
    with pytest.raises(UserError) as raised:
        wide.refresh("totals")
    assert "20 changed rows" in raised.value.message


def test_only_tables_that_read_a_changed_column_move(
    wide: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """In one refresh: a table that another one reads may move in columns that this does not."""
    wide.create_stream_table("notes", "SELECT note, count(*) AS n FROM orders GROUP BY note")
    wide.create_stream_table("kept", "SELECT id, customer, note FROM orders WHERE amount < 100")
    wide.create_stream_table("customers", "SELECT customer, count(*) AS n FROM kept GROUP BY 1")
    epochs = {one.name: one.epoch for one in wide.status()}
    sql.execute("UPDATE orders SET note = 'seen' WHERE id = 2")
    for name in ("totals", "customers", "notes"):
        wide.refresh(name)
        assert_served(wide, sql, name)
        assert wide.verify(name, source=True).equal
    moved = {one.name for one in wide.status() if one.epoch > epochs[one.name]}
    assert moved == {"public.notes", "public.kept"}
    assert all(one.lag_own == timedelta(0) for one in wide.status())


def test_a_table_that_failed_goes_on_when_the_change_is_taken_back(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute(WIDE)
    sql.execute("INSERT INTO orders VALUES (1, 1, 1)")
    project.create_stream_table("totals", "SELECT customer, 10 / amount AS share FROM orders")
    sql.execute("UPDATE orders SET amount = 0")
    with pytest.raises(UserError):
        project.refresh("totals")
    sql.execute("UPDATE orders SET amount = 1")
    project.refresh("totals")
    (status,) = project.status()
    assert (status.status, status.reason) == ("ACTIVE", None)
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


UNSEEN = {
    "totals": "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer",
    "best": "SELECT max(total) AS best FROM totals",
    "shown": "SELECT sum(best) AS best FROM best",
}


def test_what_readers_cannot_see_does_not_reach_them(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """The count of a group moves, its sum does not: the strata above are skipped, and exact."""
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders VALUES (1, 1, 5), (2, 1, 5), (3, 2, 4)")
    project.create_stream_tables(UNSEEN)
    for number in range(4, 7):
        sql.execute("INSERT INTO orders VALUES (%s, 1, 0)", (number,))
        refresh = project.refresh("shown")
        assert (refresh.mode, refresh.strata_skipped) == ("SKIPPED", 1)
        newest = {line.table: line.mode for line in reversed(project.history(limit=1))}
        assert newest == {project._engine.catalog.state().stream_tables[2].relation: "DIFFERENTIAL"}
    assert [status.lag_own.total_seconds() for status in project.status()] == [0, 0, 0]
    sql.execute("DELETE FROM orders WHERE id < 3")
    assert project.refresh("shown").mode == "DIFFERENTIAL"
    for name in UNSEEN:
        assert project.verify(name, source=True).equal
        assert_served(project, sql, name)


def test_without_skipping_every_reader_is_looked_at(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders VALUES (1, 1, 5), (2, 1, 5)")
    project.create_stream_tables(UNSEEN)
    project.set("enable_stratum_skip", False)
    sql.execute("INSERT INTO orders VALUES (3, 1, 0)")
    refresh = project.refresh("best")
    assert (refresh.mode, refresh.rows_inserted, refresh.rows_deleted) == ("DIFFERENTIAL", 0, 0)
    # What was looked at before is skipped from now on.
    project.set("enable_stratum_skip", True)
    sql.execute("INSERT INTO orders VALUES (4, 1, 0)")
    assert project.refresh("best").mode == "SKIPPED"
    sql.execute("INSERT INTO orders VALUES (5, 1, 1)")
    assert project.refresh("shown").mode == "DIFFERENTIAL"
    for name in UNSEEN:
        assert_served(project, sql, name)
