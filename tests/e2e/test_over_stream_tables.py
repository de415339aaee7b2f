"""Stream tables over stream tables: one refresh brings all of them to one epoch."""

from __future__ import annotations

import psycopg
import pytest

import headrace

pytestmark = pytest.mark.e2e


def test_a_chain_and_a_diamond(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE orders (id int, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 5, i FROM generate_series(1, 20) i")
    project.create_stream_table(
        "totals",
        "SELECT customer, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer"
        " HAVING count(*) > 1",
    )
    project.create_stream_table("large", "SELECT customer, total FROM totals WHERE total > 30")
    project.create_stream_table(
        "diamond",
        "SELECT count(*) AS customers, sum(t.total) AS total, sum(l.total) AS large"
        " FROM totals t JOIN large l ON t.customer = l.customer",
    )
    expected = """
        WITH totals AS (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer
            HAVING count(*) > 1), large AS (SELECT * FROM totals WHERE total > 30)
        SELECT count(*), sum(t.total), sum(l.total)
        FROM totals t JOIN large l ON t.customer = l.customer
    """
    for statement in (
        "SELECT 1",
        "UPDATE orders SET amount = amount + 7 WHERE customer = 1",
        "DELETE FROM orders WHERE customer = 2 AND id > 3",
        "DELETE FROM orders",
        "INSERT INTO orders SELECT i, i % 2, i FROM generate_series(1, 20) i",
    ):
        sql.execute(statement)
        refresh = project.refresh("diamond")
        assert refresh.mode in ("DIFFERENTIAL", "SKIPPED")
        assert sql.execute("TABLE diamond").fetchall() == sql.execute(expected).fetchall()
        assert len({table.epoch for table in project.status()}) == 1, "one world"
    assert project.refresh("diamond").mode == "SKIPPED"
    receipt = project.verify("diamond", source=True)
    assert receipt.equal, receipt.detail
    assert len(receipt.detail) == 5
    with pytest.raises(headrace.UserError) as caught:
        project.drop_stream_table("totals")
    assert caught.value.code == "has-dependents"
    project.drop_stream_table("totals", cascade=True)
    assert project.status() == ()


def test_a_change_that_nobody_sees_stops_at_once(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE orders (customer int, amount int)")
    sql.execute("INSERT INTO orders VALUES (1, 5)")
    project.create_stream_table(
        "totals", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    )
    project.create_stream_table("above", "SELECT customer FROM totals WHERE total > 1")
    sql.execute("INSERT INTO orders VALUES (1, 0)")
    refresh = project.refresh("above")
    assert (refresh.rows_inserted, refresh.rows_deleted, refresh.spark_jobs) == (0, 0, 0)


def test_a_table_joined_with_itself(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE edges (a int, b int)")
    sql.execute("INSERT INTO edges VALUES (1, 2), (2, 3), (2, 3), (3, 1)")
    query = "SELECT x.a, y.b FROM edges x JOIN edges y ON x.b = y.a"
    project.create_stream_table("paths", query)
    for statement in (
        "INSERT INTO edges VALUES (3, 3), (NULL, 1)",
        "UPDATE edges SET a = b, b = a",
        "DELETE FROM edges WHERE ctid = (SELECT min(ctid) FROM edges)",
    ):
        sql.execute(statement)
        assert project.refresh("paths").mode == "DIFFERENTIAL"
        served = sorted(sql.execute("TABLE paths"), key=repr)
        assert served == sorted(sql.execute(query), key=repr)
