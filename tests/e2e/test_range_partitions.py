"""Stream tables partitioned by range, from the source to the served table and the store."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from headrace.commands.run import run
from headrace.errors import UserError
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

DAYS = "SELECT day, customer, sum(amount) AS total FROM orders GROUP BY day, customer"
MOMENTS = "SELECT id, noted, amount FROM orders"


@pytest.fixture
def orders(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute(
        "CREATE TABLE orders"
        " (id int PRIMARY KEY, day date, noted timestamptz, customer int, amount int)"
    )
    sql.execute(
        "INSERT INTO orders SELECT i, DATE '2024-01-01' + i, '2024-01-01Z'::timestamptz"
        " + i * interval '7 hours', i % 3, i FROM generate_series(1, 200) i"
    )
    return project


def bounds(sql: psycopg.Connection, table: str) -> set[str]:
    found = sql.execute(
        "SELECT pg_get_expr(c.relpartbound, c.oid) FROM pg_class c JOIN pg_inherits i"
        " ON i.inhrelid = c.oid WHERE i.inhparent = %s::regclass AND c.relkind = 'r'",
        [table],
    )
    return {text for (text,) in found}


def test_ranges_follow_the_rows(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    options = "partition_by = 'month(day)', partition_ahead = 1, partition_drop_empty = true"
    list(run(orders._engine, f"CREATE STREAM TABLE days WITH ({options}) AS {DAYS}"))
    orders.create_stream_table("moments", MOMENTS, partition_by="week(noted)")
    orders.create_stream_table("ids", MOMENTS, partition_by="range(id, 50)")
    assert "  by month(day)" in str(orders.explain("days")).splitlines()
    assert len(bounds(sql, "days")) == 8
    assert len(bounds(sql, "moments")) == 9
    assert len(bounds(sql, "ids")) == 5
    sql.execute("DELETE FROM orders WHERE day < '2024-02-01'")
    sql.execute(
        "UPDATE orders SET day = day + 40, noted = noted - interval '9 days', id = id + 1000"
    )
    sql.execute("INSERT INTO orders VALUES (-1, NULL, NULL, 1, 1)")
    for name in ("days", "moments", "ids"):
        assert orders.refresh(name).mode == "DIFFERENTIAL"
        assert_served(orders, sql, name)
        assert orders.verify(name, source=True).equal
    assert not any("2024-01-01" in bound for bound in bounds(sql, "days"))
    assert "DEFAULT" in bounds(sql, "days")
    plan = sql.execute("EXPLAIN SELECT FROM ids WHERE id BETWEEN 1120 AND 1130").fetchall()
    assert sum("headrace_part_" in line for (line,) in plan) == 1
    few = orders.table("moments").where("noted < TIMESTAMP '2024-01-20 00:00:00'").count()
    expected = "SELECT count(*) FROM orders WHERE noted < '2024-01-20Z'"
    assert sql.execute(expected).fetchone() == (few,)


def test_another_scheme(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    orders.create_stream_table("moments", MOMENTS, partition_by="day(noted)")
    orders.alter_stream_table("moments", partition_by="year(noted)")
    assert len(bounds(sql, "moments")) == 1
    orders.alter_stream_table("moments", partition_by=None)
    assert bounds(sql, "moments") == set()
    assert_served(orders, sql, "moments")
    with pytest.raises(UserError) as raised:
        orders.alter_stream_table("moments", partition_by="month(amount)")
    assert raised.value.code == "unsupported-type"
    for option in ({"partition_drop_empty": True}, {"partition_ahead": 1}):
        with pytest.raises(UserError) as raised:
            orders.alter_stream_table("moments", **option)
        assert raised.value.code == "invalid-option"


def test_the_scheme_of_a_source(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE sales (day date, amount int) PARTITION BY RANGE (day)")
    for low, high in (("2024-01-01", "2024-02-01"), ("2024-02-01", "2024-03-01")):
        sql.execute(
            f"CREATE TABLE sales_{low[5:7]} PARTITION OF sales"
            f" FOR VALUES FROM ('{low}') TO ('{high}')"
        )
    sql.execute("INSERT INTO sales VALUES ('2024-01-05', 1), ('2024-02-05', 2)")
    query = "SELECT day, amount FROM sales"
    project.create_stream_table("filled", query, partition_by="source")
    project.create_stream_table("empty", query, partition_by="source", initialize=False)
    project.refresh("empty")
    again = "CREATE OR REPLACE STREAM TABLE filled WITH (partition_by = source) AS "
    list(run(project._engine, again + query))
    sql.execute("INSERT INTO sales VALUES ('2024-01-06', 3)")
    for name in ("filled", "empty"):
        assert project.refresh(name).mode == "DIFFERENTIAL"
        assert_served(project, sql, name)
        assert len(bounds(sql, name)) == 2
