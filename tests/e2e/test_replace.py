"""Creating many at once, creating or replacing, dropping: all or nothing, in any order."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def test_points_in_names_do_not_make_them_the_same(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute('CREATE SCHEMA a; CREATE SCHEMA "a.b"')
    orders.create_stream_tables({'"a.b".c': 'SELECT n FROM a."b.c"', 'a."b.c"': TOTALS})
    assert sql.execute('TABLE "a.b".c').fetchall() == [(3,)] * 4


def test_a_busy_source_is_left_to_a_later_writer(
    dsn: str,
    orders: headrace.Headrace,
    sql: psycopg.Connection,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def captured() -> int:
        count = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'orders'::regclass"
        return int(sql.execute(count).fetchone()[0])

    pauses: list[float] = []
    monkeypatch.setattr("headrace.capture.setup.time", SimpleNamespace(sleep=pauses.append))
    monkeypatch.setattr("headrace.capture.setup.LOCK_MILLISECONDS", 20)
    sql.execute("CREATE TABLE other (id int); INSERT INTO other VALUES (1)")
    orders.create_stream_tables({"totals": TOTALS, "ids": "SELECT id FROM other"})
    with psycopg.connect(dsn) as writer, caplog.at_level(logging.WARNING, "headrace"):
        writer.execute("INSERT INTO orders VALUES (20, 1, 1)")
        orders.drop_stream_table("totals")
        assert pauses, "it was tried for a while"
        assert [r.getMessage() for r in caplog.records] == ["capture could not be taken away"]
        assert [table.name for table in orders.status()] == ["public.ids"]
        pauses.clear()
        with headrace.connect(dsn=dsn, home=orders.home, spark=spark) as hr:
            sql.execute("INSERT INTO other VALUES (2)")
            assert hr.refresh("ids").mode == "DIFFERENTIAL"
        assert pauses == [], "nobody waits for it who only refreshes"
        assert captured() > 0
    with headrace.connect(dsn=dsn, home=orders.home, spark=spark) as hr:
        assert hr.refresh("ids").mode == "SKIPPED"
        assert captured() == 0
        assert len(hr._engine.catalog.state().sources) == 1


def test_a_log_that_cannot_be_removed_is_left_to_a_later_writer(
    orders: headrace.Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(relation: str) -> None:
        raise headrace.Unavailable("store-unreachable", f"no way to {relation}")

    orders.create_stream_table("totals", TOTALS)
    engine, store = orders._engine, orders.home / "store"
    with monkeypatch.context() as patched:
        patched.setattr(engine.store, "drop", refuse)
        orders.drop_stream_table("totals")
    assert (orders.status(), engine.catalog.state().sources) == ((), ())
    logs = {path.name for path in store.iterdir()}
    assert logs == {relation.id for relation in engine.catalog.state().relations} != set()
    engine.distrust()
    with engine.writing():
        assert (list(store.iterdir()), engine.catalog.state().relations) == ([], ())
