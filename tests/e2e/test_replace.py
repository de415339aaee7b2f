"""Creating many at once, creating or replacing, dropping: all or nothing, in any order."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
TOTALS = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def orders(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 4, i FROM generate_series(1, 12) i")
    return project


def test_many_at_once_in_any_order(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    made = orders.create_stream_tables(
        {
            "top": "SELECT max_total - 1 AS below FROM highest",
            "highest": {
                "query": "SELECT count(*) AS groups, sum(total) AS max_total FROM totals",
                "schedule": "1m",
            },
            "totals": {"query": TOTALS, "refresh_mode": "DIFFERENTIAL"},
        }
    )
    assert [table.name for table in made] == ["public.top", "public.highest", "public.totals"]
    assert (made[1].schedule, made[2].refresh_mode) == ("1m", "DIFFERENTIAL")
    assert len({table.epoch for table in made}) == 1
    assert len({orders.history(t.name)[0].finished_at for t in made}) == 1, "one publish"
    assert sql.execute("TABLE top").fetchall() == [(77,)]
    sql.execute("INSERT INTO orders VALUES (13, 1, 22)")
    assert orders.refresh("top").mode == "DIFFERENTIAL"
    assert sql.execute("TABLE top").fetchall() == [(99,)]
    assert orders.verify("top", source=True).equal


def test_of_many_none_is_left_if_one_fails(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    for wrong, code in (
        ({"a": TOTALS, "b": "SELECT nothing FROM a"}, "unknown-column"),
        ({"a": TOTALS, "b": "SELECT 1 / (n - n) AS x FROM a"}, "query-failed"),
        ({"a": "SELECT n FROM b", "b": "SELECT n FROM c", "c": "SELECT n FROM a"}, "circular"),
        ({"a": TOTALS, "b": "SELECT n FROM b"}, "circular"),
        ({"a": TOTALS, "public.a": TOTALS}, "name-exists"),
        ({"a": {"query": TOTALS, "color": "red"}}, "invalid-option"),
        ({"a": {"schedule": "1m"}}, "invalid-option"),
    ):
        with pytest.raises(headrace.UserError) as caught:
            orders.create_stream_tables(wrong)
        assert caught.value.code == code
        assert orders.status() == ()
        assert sql.execute("SELECT to_regclass('a'), to_regclass('b')").fetchone() == (None, None)
        store = orders.home / "store"
        assert not store.exists() or list(store.iterdir()) == []
    with pytest.raises(headrace.UserError) as caught:
        orders.create_stream_tables({"a": "SELECT n FROM b", "b": "SELECT n FROM a"})
    assert "public.a → public.b → public.a" in (caught.value.detail or "")


def test_create_or_replace(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    assert orders.create_or_replace_stream_table("totals", TOTALS).schedule is None
    assert orders.create_or_replace_stream_table("totals", TOTALS, "1m").schedule == "1m"
    assert len(orders.history("totals")) == 1, "the query is the same"
    orders.create_stream_table("rich", "SELECT customer FROM totals WHERE total > 20")
    query = TOTALS.replace("sum(amount)", "sum(amount * 2)")
    status = orders.create_or_replace_stream_table("totals", query, refresh_mode="DIFFERENTIAL")
    assert (status.schedule, status.refresh_mode) == (None, "DIFFERENTIAL")
    assert [r.mode for r in orders.history("totals")] == ["FULL", "FULL"]
    assert_served(orders, sql, "totals")
    assert sorted(sql.execute("TABLE rich")) == [(0,), (1,), (2,), (3,)]
    with pytest.raises(headrace.UserError) as caught:
        orders.create_or_replace_stream_table("orders", TOTALS)
    assert caught.value.code == "name-exists"


def test_drop_names_what_depends(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    orders.create_stream_tables({"totals": TOTALS, "ns": "SELECT n FROM totals"})
    sql.execute("CREATE VIEW mine AS SELECT * FROM ns")
    with pytest.raises(headrace.UserError) as caught:
        orders.drop_stream_table("totals")
    assert (caught.value.code, "public.ns" in (caught.value.detail or "")) == (
        "has-dependents",
        True,
    )
    with pytest.raises(headrace.UserError) as caught:
        orders.drop_stream_table("totals", cascade=True)
    assert (caught.value.code, "view public.mine" in (caught.value.detail or "")) == (
        "has-dependents",
        True,
    )
    assert len(orders.status()) == 2
    sql.execute("DROP VIEW mine")
    orders.drop_stream_table("totals", cascade=True)
    assert orders.status() == ()
    assert sql.execute(
        "SELECT count(*) FROM pg_namespace WHERE nspname ~ 'capture'"
    ).fetchone() == (0,)
