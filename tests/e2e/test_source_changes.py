"""What users do to their tables: results stay exact or stop with the reason, DML never fails."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
COUNTS = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def orders(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE orders (id int, customer int, amount int, note text, spare int)")
    sql.execute("INSERT INTO orders SELECT i, i % 3, i, 'n' FROM generate_series(1, 10) i")
    project.create_stream_table("totals", COUNTS)
    return project


def test_truncate_and_reload(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    steps = [
        "TRUNCATE orders",
        "BEGIN; TRUNCATE orders; INSERT INTO orders VALUES (1, 1, 1); COMMIT",
        "BEGIN; INSERT INTO orders VALUES (2, 2, 2); TRUNCATE orders;"
        " INSERT INTO orders VALUES (3, 3, 3); TRUNCATE orders; COMMIT",
        "INSERT INTO orders VALUES (4, 4, 4); TRUNCATE orders; INSERT INTO orders VALUES (5, 5, 5)",
        "VACUUM FULL orders",
    ]
    for step in steps:
        for statement in step.split("; "):
            sql.execute(statement)
        refresh = orders.refresh("totals")
        assert refresh.mode in ("DIFFERENTIAL", "SKIPPED")
        assert_served(orders, sql, "totals")
    assert orders.verify("totals", source=True).equal


def test_a_rewriting_alter_loses_nothing(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("ALTER TABLE orders ALTER amount TYPE int USING amount * 2")
    sql.execute("INSERT INTO orders VALUES (11, 1, 100)")
    orders.refresh("totals")
    assert_served(orders, sql, "totals")
    sql.execute("ALTER TABLE orders ADD COLUMN more int DEFAULT (random() * 10)::int")
    sql.execute("UPDATE orders SET amount = amount + more")
    orders.refresh("totals")
    assert_served(orders, sql, "totals")
    assert orders.verify("totals", source=True).equal


def test_unused_columns_may_go(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    for statement in (
        "ALTER TABLE orders ADD COLUMN added text",
        "ALTER TABLE orders DROP COLUMN note",
        "ALTER TABLE orders RENAME COLUMN spare TO kept",
        "ALTER TABLE orders ALTER kept TYPE text",
    ):
        sql.execute(statement)
        sql.execute("INSERT INTO orders (id, customer, amount) VALUES (12, 2, 7)")
        sql.execute("UPDATE orders SET amount = amount + 1 WHERE id = 3")
        orders.refresh("totals")
        assert_served(orders, sql, "totals")
    refresh = orders.refresh("totals")
    assert refresh.mode == "SKIPPED", "the source is not copied again and again"


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE orders RENAME COLUMN amount TO price",
        "ALTER TABLE orders DROP COLUMN amount",
        "ALTER TABLE orders ALTER amount TYPE text",
        "DROP TABLE orders",
    ],
)
def test_a_used_column_that_changes_suspends_its_reader(
    orders: headrace.Headrace, sql: psycopg.Connection, statement: str
) -> None:
    orders.create_stream_table("ids", "SELECT id FROM orders")
    sql.execute(statement)
    if "DROP TABLE" not in statement:
        sql.execute("INSERT INTO orders (id, customer) VALUES (13, 1)")
        orders.refresh("ids")
        assert_served(orders, sql, "ids")
    served = sql.execute("SELECT * FROM totals ORDER BY 1").fetchall()
    with pytest.raises(headrace.UserError) as caught:
        orders.refresh("totals")
    assert caught.value.code == "table-suspended"
    assert "orders" in (caught.value.detail or "")
    assert sql.execute("SELECT * FROM totals ORDER BY 1").fetchall() == served
    orders.drop_stream_table("totals")


def test_a_table_recreated_under_its_name_is_another_table(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("DROP TABLE orders")
    sql.execute("CREATE TABLE orders (id int, customer int, amount int)")
    sql.execute("INSERT INTO orders VALUES (1, 1, 1)")
    with pytest.raises(headrace.UserError) as caught:
        orders.refresh("totals")
    assert caught.value.code == "table-suspended"
    orders.drop_stream_table("totals")
    orders.create_stream_table("totals", COUNTS)
    assert_served(orders, sql, "totals")


def test_partitions(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute(
        "CREATE TABLE orders (id int, customer int, amount int) PARTITION BY LIST (customer)"
    )
    sql.execute("CREATE TABLE orders_1 PARTITION OF orders FOR VALUES IN (1)")
    sql.execute("CREATE TABLE orders_2 PARTITION OF orders FOR VALUES IN (2)")
    sql.execute("INSERT INTO orders SELECT i, i % 2 + 1, i FROM generate_series(1, 9) i")
    project.create_stream_table("totals", COUNTS)
    assert_served(project, sql, "totals")
    for statement in (
        "UPDATE orders SET customer = 2 WHERE id = 2",
        "INSERT INTO orders_1 VALUES (20, 1, 20)",
        "TRUNCATE orders_2",
        "CREATE TABLE orders_3 PARTITION OF orders FOR VALUES IN (3)",
        "INSERT INTO orders VALUES (30, 3, 30)",
        "ALTER TABLE orders DETACH PARTITION orders_1",
        "ALTER TABLE orders ATTACH PARTITION orders_1 FOR VALUES IN (1)",
        "DROP TABLE orders_3",
    ):
        sql.execute(statement)
        project.refresh("totals")
        assert_served(project, sql, "totals")


def test_a_lost_trigger_or_buffer_is_noticed(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    (name,) = sql.execute(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = 'orders'::regclass LIMIT 1"
    ).fetchone()
    sql.execute(f'ALTER TABLE orders DISABLE TRIGGER "{name}"')
    sql.execute("INSERT INTO orders VALUES (14, 1, 1)")
    orders.refresh("totals")
    assert_served(orders, sql, "totals")
    (oid,) = sql.execute("SELECT 'orders'::regclass::oid").fetchone()
    sql.execute(f"DROP TABLE headrace_capture.buffer_{oid}")
    sql.execute("INSERT INTO orders VALUES (15, 1, 1)")
    orders.refresh("totals")
    assert_served(orders, sql, "totals")
    sql.execute("DELETE FROM orders WHERE id = 15")
    assert orders.refresh("totals").mode == "DIFFERENTIAL"
    assert_served(orders, sql, "totals")
