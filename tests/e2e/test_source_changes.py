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
    ("statement", "query"),
    [
        ("ALTER TABLE orders RENAME COLUMN amount TO price", COUNTS.replace("amount", "price")),
        ("ALTER TABLE orders DROP COLUMN amount", COUNTS.replace("amount", "spare")),
        ("ALTER TABLE orders ALTER amount TYPE text", COUNTS.replace("sum(am", "count(am")),
        ("ALTER TABLE orders ALTER amount TYPE smallint", None),
    ],
)
def test_a_used_column_that_changes_suspends_its_reader_until_it_is_altered_or_resumed(
    orders: headrace.Headrace, sql: psycopg.Connection, statement: str, query: str | None
) -> None:
    orders.create_stream_table("ids", "SELECT id FROM orders")
    orders.create_stream_table("sums", "SELECT sum(total) AS total FROM totals")
    sql.execute(statement)
    sql.execute("INSERT INTO orders (id, customer) VALUES (13, 1)")
    orders.refresh("ids")
    assert_served(orders, sql, "ids")
    served = sql.execute("SELECT * FROM totals ORDER BY 1").fetchall()
    with pytest.raises(headrace.UserError) as caught:
        orders.refresh("sums")
    assert caught.value.code == "table-suspended"
    assert "public.totals" in caught.value.message
    assert "amount" in (caught.value.detail or "")
    assert sql.execute("SELECT * FROM totals ORDER BY 1").fetchall() == served
    if query is None:
        assert orders.resume("totals").status == "ACTIVE"
    else:
        with pytest.raises(headrace.UserError):
            orders.resume("totals")
        assert orders.alter_stream_table("totals", query=query).status == "ACTIVE"
    assert_served(orders, sql, "totals")
    sql.execute("UPDATE orders SET id = id + 100, spare = 7 WHERE id < 5")
    sql.execute("DELETE FROM orders WHERE id = 6")
    for name in ("ids", "totals"):
        assert orders.refresh(name).mode == "DIFFERENTIAL"
        assert_served(orders, sql, name)
    assert orders.refresh("sums").mode == "DIFFERENTIAL"
    assert orders.verify("sums", source=True).equal
    assert {table.status for table in orders.status()} == {"ACTIVE"}


def test_a_wider_type_rebuilds_what_uses_the_column(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """With all that reads it, over rows that the old type could not have."""
    sql.execute("CREATE TABLE notes (id int, note varchar(5))")
    sql.execute("INSERT INTO notes VALUES (1, 'abc'), (2, NULL)")
    orders.create_stream_table("ids", "SELECT id FROM orders")
    orders.create_stream_table("sums", "SELECT sum(total) AS total, max(n) AS n FROM totals")
    orders.create_stream_table("noted", "SELECT note, count(*) AS n FROM notes GROUP BY note")
    sql.execute("ALTER TABLE orders ALTER amount TYPE bigint")
    sql.execute("INSERT INTO orders VALUES (13, 1, 5000000000)")
    rebuilt = orders.refresh("sums")
    assert rebuilt.mode == "FULL"
    reason = "column amount of public.orders changed its type from integer to bigint"
    assert any(reason in line.reason for line in orders.history("totals"))
    for statement in (
        "ALTER TABLE notes ALTER note TYPE varchar(9)",
        "ALTER TABLE notes ALTER note TYPE text",
    ):
        sql.execute(statement)
        sql.execute("INSERT INTO notes VALUES (3, 'abcdefgh')")
        assert orders.refresh("noted").mode == "FULL"
        assert_served(orders, sql, "noted")
        declared = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        declared += " WHERE attname = 'note' AND attrelid = %s::regclass"
        types = [sql.execute(declared, [table]).fetchone() for table in ("noted", "notes")]
        assert types[0] == types[1]
    sql.execute(
        "UPDATE orders SET amount = amount + 1 WHERE id < 5; DELETE FROM notes WHERE id = 1"
    )
    for name in ("ids", "totals", "sums", "noted"):
        assert orders.refresh(name).mode in ("DIFFERENTIAL", "SKIPPED")
        assert_served(orders, sql, name)
    assert orders.verify("sums", source=True).equal
    assert {table.status for table in orders.status()} == {"ACTIVE"}


def test_a_refresh_rebuilds_only_what_it_needs_over_a_wider_type(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE notes (id int, pages int)")
    sql.execute("INSERT INTO notes VALUES (1, 10), (2, NULL)")
    orders.create_stream_table("noted", "SELECT id, pages FROM notes")
    orders.create_stream_table("longest", "SELECT max(pages) AS pages FROM noted")
    for table, column in (("orders", "amount"), ("notes", "pages")):
        sql.execute(f"ALTER TABLE {table} ALTER {column} TYPE bigint")

    def awaiting() -> set[str]:
        tables = orders._engine.catalog.state().stream_tables
        return {table.name for table in tables if table.awaits_rebuild}

    assert orders.refresh("totals").mode == "FULL"
    assert_served(orders, sql, "totals")
    assert awaiting() == {"noted"}, "it does not read the other table"
    assert orders.refresh("longest").mode == "FULL"
    assert awaiting() == set()
    for name in ("noted", "longest"):
        assert_served(orders, sql, name)


def test_a_column_that_is_gone_beside_a_wider_one_suspends(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    orders.create_stream_table("both", "SELECT amount, note FROM orders")
    sql.execute("ALTER TABLE orders ALTER amount TYPE bigint, ALTER note TYPE int USING 0")
    with pytest.raises(headrace.UserError) as caught:
        orders.refresh("both")
    assert caught.value.code == "table-suspended"
    (both,) = (t for t in orders._engine.catalog.state().stream_tables if t.name == "both")
    assert not both.awaits_rebuild


def test_a_query_that_a_wider_type_does_not_suit_stays_suspended(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    orders.create_stream_table("halves", "SELECT id, left(note, amount) AS part FROM orders")
    sql.execute("ALTER TABLE orders ALTER amount TYPE bigint")
    for _ in range(2):
        with pytest.raises(headrace.UserError) as caught:
            orders.refresh("halves")
        assert caught.value.code == "table-suspended"
        assert "left(text, bigint)" in (caught.value.detail or "")
    assert orders.refresh("totals").mode in ("FULL", "SKIPPED")
    assert_served(orders, sql, "totals")


@pytest.mark.parametrize(
    "change",
    ["DROP note", "RENAME note TO remark", "ALTER note TYPE int USING 0", "DROP note, DROP amount"],
)
def test_a_column_that_only_breaks_ties_is_not_missed(
    orders: headrace.Headrace, sql: psycopg.Connection, change: str
) -> None:
    """The table is rebuilt with the columns that are left to tell rows apart."""
    query = "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY id) AS n FROM orders"
    orders.create_stream_table("numbered", query)
    orders.create_stream_table("last", "SELECT max(n) AS n FROM numbered")
    sql.execute(f"ALTER TABLE orders {change}")
    sql.execute("INSERT INTO orders (id, customer) VALUES (21, 1), (22, NULL)")
    assert orders.refresh("last").mode == "FULL"
    for statement in ("DELETE FROM orders WHERE id < 3", "UPDATE orders SET customer = 1"):
        for name in ("numbered", "last"):
            assert_served(orders, sql, name)
        sql.execute(statement)
        assert orders.refresh("last").mode == "DIFFERENTIAL"
    assert orders.verify("numbered", source=True).equal


def test_a_column_of_an_order_is_missed(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    orders.create_stream_table("n", "SELECT id, rank() OVER (ORDER BY note) AS n FROM orders")
    orders.create_stream_table("m", "SELECT id FROM orders NATURAL JOIN (SELECT note FROM orders)")
    sql.execute("ALTER TABLE orders DROP note")
    for name in ("n", "m"):
        with pytest.raises(headrace.UserError) as caught:
            orders.refresh(name)
        assert caught.value.code == "table-suspended"


def test_a_dropped_source_suspends_its_readers_until_it_is_there_again(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("DROP TABLE orders")
    with pytest.raises(headrace.UserError) as caught:
        orders.refresh("totals")
    assert (caught.value.code, "orders" in (caught.value.detail or "")) == ("table-suspended", True)
    with pytest.raises(headrace.UserError) as caught:
        orders.resume("totals")
    assert caught.value.code == "unknown-table"
    # A table of the same name is another table.
    sql.execute("CREATE TABLE orders (id int, customer int, amount int)")
    sql.execute("INSERT INTO orders VALUES (1, 1, 1)")
    with pytest.raises(headrace.UserError) as caught:
        orders.refresh("totals")
    assert caught.value.code == "table-suspended"
    assert orders.resume("totals").status == "ACTIVE"
    assert_served(orders, sql, "totals")
    assert len(orders._engine.catalog.state().sources) == 1, "the old one is forgotten"
    sql.execute("INSERT INTO orders VALUES (2, 1, 5)")
    assert orders.refresh("totals").mode == "DIFFERENTIAL"
    assert_served(orders, sql, "totals")


def test_a_renamed_source_is_followed(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute("ALTER TABLE orders RENAME TO purchases")
    sql.execute("CREATE TABLE orders (id int, customer int, amount int)")
    sql.execute("INSERT INTO purchases VALUES (20, 1, 100)")
    assert orders.refresh("totals").mode == "DIFFERENTIAL"
    expected = "SELECT customer, count(*), sum(amount) FROM purchases GROUP BY 1 ORDER BY 1"
    served = "SELECT * FROM totals ORDER BY 1"
    assert sql.execute(served).fetchall() == sql.execute(expected).fetchall()
    assert orders.reinit("totals").mode == "FULL"
    assert sql.execute(served).fetchall() == sql.execute(expected).fetchall()
    # Who names it now means it by its new name, and the other by the old one.
    query = "SELECT p.id FROM purchases p JOIN orders o ON p.id = o.id"
    orders.create_stream_table("shared", query)
    sql.execute("INSERT INTO orders VALUES (20, 1, 1)")
    assert orders.refresh("shared").mode == "DIFFERENTIAL"
    assert sql.execute("TABLE shared").fetchall() == [(20,)]
    assert orders.verify("shared", source=True).equal


def test_a_column_added_after_capture_can_be_used(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("ALTER TABLE orders ADD COLUMN extra int DEFAULT 4")
    orders.create_stream_table("extras", "SELECT id, extra FROM orders")
    orders.create_stream_table("everything", "SELECT * FROM orders")
    sql.execute("ALTER TABLE orders ADD COLUMN later int DEFAULT 5")
    orders.create_stream_table("later", "SELECT later FROM orders")
    sql.execute("UPDATE orders SET extra = id, later = 6 WHERE id > 7")
    modes = {name: orders.refresh(name).mode for name in ("totals", "extras", "later")}
    assert modes == {"totals": "SKIPPED", "extras": "DIFFERENTIAL", "later": "DIFFERENTIAL"}
    for name in modes:
        assert_served(orders, sql, name)
    assert orders.refresh("everything").mode == "DIFFERENTIAL"
    names = [column.name for column in sql.execute("TABLE everything").description]
    assert names == ["id", "customer", "amount", "note", "spare", "extra"], "pinned"
    assert orders.verify("everything", source=True).equal


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


def test_a_reader_that_waits_for_its_rebuild_blocks_no_other(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    query = "SELECT o.spare, t.n FROM orders o JOIN totals t ON o.customer = t.customer"
    orders.create_stream_table("both", query)
    orders.suspend("totals")
    sql.execute("ALTER TABLE orders DROP COLUMN spare, ADD COLUMN extra int")
    orders.create_stream_table("extras", "SELECT id, extra FROM orders")
    sql.execute("ALTER TABLE orders DROP COLUMN note")
    sql.execute("INSERT INTO orders VALUES (20, 1, 5, 6)")
    assert orders.refresh("extras").mode == "DIFFERENTIAL"
    assert_served(orders, sql, "extras")
    statuses = {table.name: table.status for table in orders.status()}
    assert statuses["public.both"] == "INITIALIZING"
    assert statuses["public.totals"] == "SUSPENDED"
