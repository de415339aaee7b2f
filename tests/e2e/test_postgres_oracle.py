"""verify with PostgreSQL as the oracle: its own answer, in the snapshot of a cut."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace
from headrace.functions import FUNCTION_BY_NAME
from tests.daemon.running import Running
from tests.e2e.oracle_queries import QUERIES, TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

CHANGE = """
UPDATE orders SET amount = amount + 1, customer = customer % 3 WHERE id % 5 = 0;
DELETE FROM orders WHERE id % 13 = 0;
INSERT INTO orders (id, customer, amount, weight)
VALUES (1000, 3, 99.99, 'NaN'), (1001, NULL, 0, 0);
"""


@pytest.fixture
def shop(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute(TABLES)
    return project


def test_tables_that_are_right_are_equal(shop: headrace.Headrace, sql: psycopg.Connection) -> None:
    """Changes that are not taken in yet are in the cut, and so in the table."""
    shop.create_stream_tables(QUERIES)
    for change in (None, CHANGE):
        if change is not None:
            sql.execute(change)
        for name in QUERIES:
            receipt = shop.verify(name, oracle="postgres")
            assert receipt.equal, (name, receipt.detail)
            assert receipt.oracle == "postgres"
            assert list(receipt.detail) == [f"postgres public.{name}", f"served public.{name}"]
    assert shop.verify("sums").oracle == "spark"
    assert {receipt.oracle for receipt in shop._engine.catalog.receipts()} == {"spark", "postgres"}


def test_where_spark_computes_something_else_only_postgresql_finds_it(
    shop: headrace.Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides of the plain verify are wrong in the same way."""
    wrong = replace(
        FUNCTION_BY_NAME["reverse"], spark=lambda a, *_: a[0], evaluate=lambda text: text
    )
    monkeypatch.setitem(FUNCTION_BY_NAME, "reverse", wrong)
    shop.create_stream_table("reversed", "SELECT id, reverse(note) AS r FROM orders WHERE id < 4")
    assert shop.verify("reversed").equal
    receipt = shop.verify("reversed", oracle="postgres")
    assert not receipt.equal
    assert (receipt.missing, receipt.surplus) == (3, 3)
    sample = receipt.detail["postgres public.reversed"]["sample"]
    assert {"copies": 1, "id": "1", "r": "1n"} in sample
    assert {"copies": -1, "id": "1", "r": "n1"} in sample


def test_ties_that_postgresql_breaks_in_its_own_way(
    shop: headrace.Headrace, sql: psycopg.Connection
) -> None:
    shop.create_stream_table("first", "SELECT id, code FROM orders ORDER BY customer, id LIMIT 9")
    assert shop.verify("first", oracle="postgres").equal
    shop.create_stream_table("some", "SELECT customer, id FROM orders ORDER BY customer LIMIT 9")
    # PostgreSQL returns the rows of a customer as they are stored, the last first.
    sql.execute("CREATE TABLE other (LIKE orders)")
    sql.execute("INSERT INTO other TABLE orders")
    sql.execute("TRUNCATE orders")
    sql.execute("INSERT INTO orders SELECT * FROM other ORDER BY id DESC")
    with pytest.raises(headrace.UserError) as caught:
        shop.verify("some", oracle="postgres")
    assert caught.value.code == "oracle-unsupported"
    assert shop.verify("some").equal


def test_what_cannot_be_asked(shop: headrace.Headrace, sql: psycopg.Connection) -> None:
    shop.set("allow_circular", True)
    shop.create_stream_table("up", "SELECT id FROM customers UNION SELECT id FROM up WHERE id > 3")
    shop.create_stream_table("lowered", "SELECT id, reverse(name) AS l FROM customers")
    with pytest.raises(headrace.UserError) as caught:
        shop.verify("up", oracle="postgres")
    assert caught.value.code == "oracle-unsupported"
    with pytest.raises(headrace.UserError) as caught:
        shop.verify("up", oracle="oracle")
    assert caught.value.code == "invalid-option"
    # A function that shadows a built-in one since then is never run.
    sql.execute("CREATE TABLE calls (n int)")
    sql.execute(
        "CREATE FUNCTION reverse(varchar) RETURNS text LANGUAGE sql AS"
        " $$ INSERT INTO calls VALUES (1) RETURNING 'x' $$"
    )
    with pytest.raises(headrace.UserError) as caught:
        shop.verify("lowered", oracle="postgres")
    assert caught.value.code == "unsupported-function"
    assert sql.execute("TABLE calls").fetchall() == []


def test_while_others_write(shop: headrace.Headrace, dsn: str) -> None:
    """The table is brought to the very cut in which PostgreSQL answers, not to a later one."""
    shop.create_stream_tables({name: QUERIES[name] for name in ("sums", "viewed", "over")})
    stop = threading.Event()

    def write() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            number = 5000
            while not stop.is_set():
                number += 1
                connection.execute(
                    "INSERT INTO orders (id, customer, amount) VALUES (%s, %s, 50)",
                    [number, number % 7],
                )
                connection.execute(
                    "UPDATE orders SET amount = amount + 1 WHERE id = %s", [number % 200]
                )

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            for name in ("over", "sums"):
                receipt = shop.verify(name, oracle="postgres")
                assert receipt.equal, receipt.detail
    finally:
        stop.set()
        writer.join()


def test_statements(shop: headrace.Headrace, sql: psycopg.Connection) -> None:
    done = shop.run(
        f"CREATE STREAM TABLE sums AS {QUERIES['sums']}"
        "VERIFY STREAM TABLE sums; VERIFY STREAM TABLE sums SOURCE ORACLE postgres;"
    )
    assert [(one.act, one.equal) for one in done[1:]] == [
        ("verified by spark (equal)", True),
        ("verified by postgres (equal)", True),
    ]
    newest = shop._engine.catalog.receipts()[0]
    assert "source public.orders" in newest.detail


def test_over_sources_captured_from_the_wal(
    shop: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """The answer's snapshot and the end of what is read from the WAL are one cut."""
    shop.set("cdc_mode", "wal")
    shop.create_stream_tables({name: QUERIES[name] for name in ("sums", "joined", "viewed")})
    for change in ("INSERT INTO orders (id, customer, amount) VALUES (900, 2, 30)", CHANGE):
        sql.execute(change)
        shop.refresh("viewed")
    assert {source.mode for source in shop._engine.catalog.state().sources} == {"WAL"}
    sql.execute("UPDATE orders SET amount = amount * 2, customer = 5 WHERE id % 3 = 0")
    for name in ("sums", "joined", "viewed"):
        receipt = shop.verify(name, oracle="postgres")
        assert receipt.equal, (name, receipt.detail)
    assert {source.mode for source in shop._engine.catalog.state().sources} == {"WAL"}


def test_a_statement_that_a_daemon_executes(
    shop: headrace.Headrace, sql: psycopg.Connection, dsn: str, tmp_path: Path, spark: SparkSession
) -> None:
    with Running(shop), headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as client:
        client.run(f"CREATE STREAM TABLE sums AS {QUERIES['sums']}")
        sql.execute(CHANGE)
        (done,) = client.run("VERIFY STREAM TABLE sums ORACLE postgres")
        assert (done.act, done.equal) == ("verified by postgres (equal)", True)
        with pytest.raises(headrace.UserError) as caught:
            client.run("VERIFY STREAM TABLE sums ORACLE delphi")
        assert caught.value.code in ("invalid-option", "syntax-error")
    newest = shop._engine.catalog.receipts()[0]
    assert (newest.oracle, newest.equal) == ("postgres", True)
