"""Stream tables that are created without rows: `initialize = false`, filled by a refresh."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import headrace
from headrace.engine.steps import Step
from headrace.errors import UserError
from headrace.spark.run import Runner
from tests.e2e.oracle import assert_served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e
TOTALS = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer"
BIG = "SELECT customer, total FROM totals WHERE total > 15"
BOTH = "SELECT t.customer, t.n, b.total FROM totals t JOIN big b USING (customer)"


@pytest.fixture
def orders(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 4, i FROM generate_series(1, 12) i")
    return project


def standing(hr: headrace.Headrace) -> dict[str, str]:
    return {table.name.removeprefix("public."): table.status for table in hr.status()}


def count(sql: psycopg.Connection, name: str) -> int:
    row = sql.execute(f"SELECT count(*) FROM {name}").fetchone()
    assert row is not None
    return int(row[0])


def captured(sql: psycopg.Connection) -> int:
    row = sql.execute(
        "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'orders'::regclass"
    ).fetchone()
    assert row is not None
    return int(row[0])


def empty(query: str, **options: Any) -> dict[str, Any]:
    return {"query": query, "initialize": False, **options}


def test_a_table_without_rows_is_filled_by_its_first_refresh(
    orders: headrace.Headrace, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Runner, "collect", _no_spark)
        patched.setattr(Runner, "frame", _no_spark)
        made = orders.create_stream_table("totals", TOTALS, initialize=False, tier="hot")
    assert (made.status, made.epoch, made.as_of, made.lag) == ("INITIALIZING", 0, None, None)
    assert "first refresh" in (made.reason or "")
    assert made.options == {"tier": "hot"}, "it is no property of the table"
    assert captured(sql) == 0
    state = orders._engine.catalog.state()
    assert (state.sources, len(state.relations)) == ((), 1)
    assert sql.execute("SELECT customer, n, total FROM totals").fetchall() == []
    with pytest.raises(psycopg.Error, match="totals"):
        sql.execute("INSERT INTO totals VALUES (1, 1, 1)")
    assert orders.table("totals").columns == ["customer", "n", "total"]
    assert orders.table("totals").count() == 0
    changes = orders.changes("totals")
    assert (changes.epoch, changes.frame.count()) == (0, 0)
    assert "orders" in str(orders.explain("totals"))
    checks = {one.area: one.level for one in orders.health_check().checks}
    assert (checks["tables"], checks["lag"], checks["capture"]) == ("fine", "fine", "fine")
    for oracle in ("spark", "postgres"):
        with pytest.raises(UserError, match="never filled"):
            orders.verify("totals", oracle=oracle)
    assert captured(sql) == 0
    refresh = orders.refresh("totals")
    assert (refresh.mode, refresh.reason, refresh.rows_inserted) == ("FULL", "first refresh", 4)
    assert standing(orders) == {"totals": "ACTIVE"}
    assert_served(orders, sql, "totals")
    assert len(orders._engine.catalog.state().relations) == 2, "the log of before is gone"
    sql.execute("INSERT INTO orders VALUES (20, 1, 1), (21, 9, 9)")
    assert orders.refresh("totals").mode == "DIFFERENTIAL"
    assert_served(orders, sql, "totals")
    assert orders.verify("totals", source=True).equal


def _no_spark(*_: object, **__: object) -> None:
    raise AssertionError("Spark is not needed")


def test_readers_fill_what_they_read(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    orders.create_stream_table("totals", TOTALS, initialize=False)
    orders.create_stream_table("big", BIG, initialize=False)
    orders.create_stream_table("both", BOTH, initialize=False)
    assert set(standing(orders).values()) == {"INITIALIZING"}
    with pytest.raises(UserError) as caught:
        orders.drop_stream_table("totals")
    assert caught.value.code == "has-dependents"
    orders.refresh("totals")
    assert standing(orders) == {"totals": "ACTIVE", "big": "INITIALIZING", "both": "INITIALIZING"}
    sql.execute("INSERT INTO orders VALUES (20, 1, 100)")
    assert orders.refresh("totals").mode == "DIFFERENTIAL", "nobody waits for what has no rows"
    assert count(sql, "big") == 0
    assert orders.refresh("both").reason == "first refresh"
    assert set(standing(orders).values()) == {"ACTIVE"}
    assert {line.epoch for line in orders.history(limit=3)} == {orders.status()[0].epoch}
    sql.execute("UPDATE orders SET amount = amount + 1 WHERE customer = 2")
    assert orders.refresh("big").mode == "DIFFERENTIAL"
    for name in ("totals", "big", "both"):
        assert_served(orders, sql, name)
        assert orders.verify(name).equal


def test_a_table_with_rows_over_one_without_fills_it(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    orders.create_stream_table("totals", TOTALS, initialize=False)
    orders.create_stream_table("big", BIG)
    assert standing(orders) == {"totals": "ACTIVE", "big": "ACTIVE"}
    assert_served(orders, sql, "totals")
    assert_served(orders, sql, "big")
    orders.create_stream_tables(
        {
            "a": empty("SELECT customer FROM orders"),
            "b": "SELECT count(*) AS n FROM a",
            "c": empty("SELECT n + 1 AS n FROM b"),
        }
    )
    found = standing(orders)
    assert (found["a"], found["b"], found["c"]) == ("ACTIVE", "ACTIVE", "INITIALIZING")
    assert (count(sql, "b"), count(sql, "c")) == (1, 0)
    sql.execute("INSERT INTO orders VALUES (20, 1, 1)")
    assert orders.wait_fresh("c") > 0
    assert_served(orders, sql, "c")
    assert orders.verify("c").equal


def test_replacing_altering_and_dropping(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    orders.create_stream_table("totals", TOTALS, initialize=False)
    orders.create_stream_table("big", "SELECT customer FROM totals", initialize=False)
    with pytest.raises(UserError) as caught:
        orders.alter_stream_table("totals", initialize=True)
    assert caught.value.code == "invalid-option"
    orders.alter_stream_table(
        "totals", query="SELECT customer, max(amount) AS m FROM orders GROUP BY 1"
    )
    orders.alter_stream_table("totals", rename_to="tops", schedule="1h")
    orders.alter_stream_table("tops", partition_by="customer")
    assert standing(orders) == {"tops": "INITIALIZING", "big": "INITIALIZING"}
    assert sql.execute("SELECT customer, m FROM tops").fetchall() == []
    assert captured(sql) == 0
    orders.alter_stream_table("big", query="SELECT m FROM tops")
    orders.refresh("big")
    assert_served(orders, sql, "tops")
    assert_served(orders, sql, "big")
    before = sql.execute("SELECT * FROM tops ORDER BY 1").fetchall()
    made = orders.create_or_replace_stream_table(
        "tops", "SELECT customer, max(amount) AS m FROM orders GROUP BY 1", initialize=False
    )
    assert made.status == "ACTIVE", "what has rows keeps them"
    assert sql.execute("SELECT * FROM tops ORDER BY 1").fetchall() == before
    for query in ("SELECT id FROM orders", "SELECT id, amount FROM orders"):
        made = orders.create_or_replace_stream_table("ids", query, initialize=False)
        assert made.status == "INITIALIZING"
    assert orders.create_or_replace_stream_table("ids", query).status == "ACTIVE"
    assert_served(orders, sql, "ids")
    orders.create_stream_table("more", "SELECT id FROM ids", initialize=False)
    orders.reinit("ids")
    orders.drop_stream_table("tops", cascade=True)
    assert orders.reinit("more").reason == "reinitialised"
    assert_served(orders, sql, "more")
    orders.create_stream_table("gone", TOTALS, initialize=False)
    orders.drop_stream_table("gone")
    relations = len(orders._engine.catalog.state().relations)
    assert len(list((orders.home / "store").iterdir())) == relations


def test_suspended_without_rows(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    orders.create_stream_table("totals", TOTALS, initialize=False)
    assert orders.suspend("totals").status == "SUSPENDED"
    for refused in (orders.refresh, lambda _: orders.create_stream_table("big", BIG)):
        with pytest.raises(UserError) as caught:
            refused("totals")
        assert caught.value.code == "table-suspended"
    assert captured(sql) == 0
    orders.create_stream_table("big", BIG, initialize=False)
    with pytest.raises(UserError) as caught:
        orders.refresh("big")
    assert caught.value.code == "table-suspended"
    assert standing(orders)["big"] == "INITIALIZING", "it goes on by itself once the other does"
    orders.drop_stream_table("big")
    resumed = orders.resume("totals")
    assert (resumed.status, count(sql, "totals")) == ("INITIALIZING", 0)
    assert "first refresh" in (resumed.reason or "")
    sql.execute("ALTER TABLE orders RENAME TO hidden")
    with pytest.raises(UserError):
        orders.refresh("totals")
    assert standing(orders) == {"totals": "SUSPENDED"}
    reason = orders.status()[0].reason
    with pytest.raises(UserError):
        orders.refresh("totals")
    assert reason is not None
    assert orders.status()[0].reason == reason, "it does not grow with every attempt"
    sql.execute("ALTER TABLE hidden RENAME TO orders")
    assert orders.refresh("totals").reason == "first refresh"
    assert_served(orders, sql, "totals")


def test_a_cycle_without_rows(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    orders.set("allow_circular", value=True)
    sql.execute("CREATE TABLE edges (a int, b int)")
    sql.execute("INSERT INTO edges VALUES (1, 2), (2, 3), (3, 4)")
    orders.create_stream_tables(
        {
            "odd": empty(
                "SELECT a, b FROM edges UNION SELECT e.a, r.b FROM edges e JOIN even r ON e.b = r.a"
            ),
            "even": empty("SELECT e.a, r.b FROM edges e JOIN odd r ON e.b = r.a"),
        }
    )
    assert standing(orders) == {"odd": "INITIALIZING", "even": "INITIALIZING"}
    assert "odd" in str(orders.explain("even"))
    orders.refresh("even")
    assert standing(orders) == {"odd": "ACTIVE", "even": "ACTIVE"}
    assert sql.execute("SELECT a, b FROM even ORDER BY 1").fetchall() == [(1, 3), (2, 4)]
    sql.execute("INSERT INTO edges VALUES (4, 5)")
    assert orders.refresh("odd").mode == "DIFFERENTIAL"
    assert orders.verify("odd").equal


def test_statements_and_folders(
    orders: headrace.Headrace, sql: psycopg.Connection, tmp_path: Path
) -> None:
    text = f"CREATE STREAM TABLE totals WITH (initialize = false, tier = 'hot') AS {TOTALS};"
    orders.run(text)
    assert standing(orders) == {"totals": "INITIALIZING"}
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "all.sql").write_text(
        f"{text} CREATE STREAM TABLE big WITH (initialize = off) AS {BIG};", encoding="utf-8"
    )
    orders.apply(orders.plan(folder))
    assert standing(orders) == {"totals": "INITIALIZING", "big": "INITIALIZING"}
    assert orders.plan(folder).nothing_to_do
    orders.run("REFRESH STREAM TABLE big")
    assert set(standing(orders).values()) == {"ACTIVE"}
    assert orders.plan(folder).nothing_to_do, "it says how tables begin, not how they are"
    assert_served(orders, sql, "big")
    with pytest.raises(UserError, match="initialize"):
        orders.run("ALTER STREAM TABLE big SET (initialize = true)")


@pytest.mark.parametrize(
    ("when", "kind"),
    [
        ("after", "RecordLogs"),
        ("after", "CreateLog"),
        ("before", "Publish"),
        ("after", "Publish"),
    ],
)
def test_a_creation_that_dies_leaves_all_or_nothing(
    dsn: str,
    tmp_path: Path,
    spark: SparkSession,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
    kind: str,
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")

    def watch(at: str, step: Step) -> None:
        if (at, type(step).__name__) == (when, kind):
            raise KeyboardInterrupt

    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr, monkeypatch.context() as on:
        on.setattr("headrace.lifecycle.build._clean_up", lambda *_: None)
        on.setattr(hr._engine, "watch", watch)
        with pytest.raises(KeyboardInterrupt):
            hr.create_stream_tables({"totals": empty(TOTALS), "big": empty(BIG)})
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr:
        whole = (when, kind) == ("after", "Publish")
        if not whole:
            assert hr.status() == ()
            hr.create_stream_tables({"totals": empty(TOTALS), "big": empty(BIG)})
        assert set(standing(hr).values()) == {"INITIALIZING"}
        assert len(list((hr.home / "store").iterdir())) == 2
        hr.refresh("big")
        assert set(standing(hr).values()) == {"ACTIVE"}


def test_uninstall_without_rows(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    orders.create_stream_table("totals", TOTALS, initialize=False)
    orders.uninstall()
    assert sql.execute("SELECT to_regclass('totals')").fetchone() == (None,)


def test_nothing_is_captured_again_before_the_first_refresh(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """The new column is not captured yet, and what is captured serves another table."""
    orders.create_stream_table("ids", "SELECT id FROM orders")
    sql.execute("ALTER TABLE orders ADD COLUMN extra int DEFAULT 5")
    (before,) = orders._engine.catalog.state().sources
    orders.create_stream_table("extras", "SELECT id, extra FROM orders", initialize=False)
    (source,) = orders._engine.catalog.state().sources
    assert source.relation == before.relation
    assert orders.history("ids")[0].reason == "first refresh"
    assert orders.refresh("extras").reason == "first refresh"
    sql.execute("UPDATE orders SET extra = id WHERE id < 4")
    for name in ("ids", "extras"):
        orders.refresh(name)
        assert_served(orders, sql, name)
        assert orders.verify(name, source=True).equal


def test_tables_with_and_without_rows_are_recorded_as_one(
    orders: headrace.Headrace, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(at: str, step: Step) -> None:
        if (at, type(step).__name__) == ("before", "Publish"):
            raise KeyboardInterrupt

    tables = {"totals": TOTALS, "big": empty(BIG)}
    with monkeypatch.context() as patched:
        patched.setattr("headrace.lifecycle.build._clean_up", lambda *_: None)
        patched.setattr(orders._engine, "watch", watch)
        with pytest.raises(KeyboardInterrupt):
            orders.create_stream_tables(tables)
    assert orders.status() == ()
    orders.create_stream_tables(tables)
    assert standing(orders) == {"totals": "ACTIVE", "big": "INITIALIZING"}
    assert len(list((orders.home / "store").iterdir())) == 3
    orders.refresh("big")
    assert_served(orders, sql, "big")
