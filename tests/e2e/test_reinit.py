"""Stream tables that stop, go on, and are rebuilt, also where logs are lost."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace
from headrace.catalog import Change
from tests.e2e.oracle import assert_served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e
TOTALS = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def tables(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 4, i FROM generate_series(1, 12) i")
    project.create_stream_tables({"totals": TOTALS, "ns": "SELECT n FROM totals"})
    return project


def statuses(hr: headrace.Headrace) -> dict[str, str]:
    return {table.name.removeprefix("public."): table.status for table in hr.status()}


def test_reinit_keeps_what_is_served_and_the_history(
    tables: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE VIEW mine AS SELECT * FROM totals")
    rows = "SELECT ctid, t FROM totals t ORDER BY 1"
    before = sql.execute(rows).fetchall()
    logs = len(list((tables.home / "store").iterdir()))
    refresh = tables.reinit("totals")
    assert (refresh.mode, refresh.reason) == ("FULL", "reinitialised")
    assert sql.execute(rows).fetchall() == before, "not a row was touched"
    assert len(list((tables.home / "store").iterdir())) == logs, "old logs are gone"
    assert [r.reason for r in tables.history("totals")] == ["reinitialised", "first refresh"]
    assert tables.history("ns")[0].reason == "a table that it reads was rebuilt"
    sql.execute("INSERT INTO orders VALUES (20, 1, 1), (21, 9, 9)")
    assert tables.refresh("ns").mode == "DIFFERENTIAL"
    assert_served(tables, sql, "totals")
    assert tables.verify("ns", source=True).equal
    with sql.transaction():
        sql.execute("SET LOCAL headrace.publishing = 'on'")
        sql.execute("UPDATE totals SET n = 99; DELETE FROM totals WHERE customer = 2")
        sql.execute("INSERT INTO totals SELECT 77, 7, 7")
    assert not tables.verify("totals").equal
    tables.reinit("totals")
    assert_served(tables, sql, "totals")
    assert tables.verify("totals").equal


@pytest.mark.parametrize("more", [False, True])
def test_what_another_version_kept_is_not_gone_on_with(
    tables: headrace.Headrace, sql: psycopg.Connection, more: bool
) -> None:
    """As if it had cut the query in other places, or in more: a column would be read as NULL."""
    engine = tables._engine
    table = engine.catalog.state().stream_table("public", "totals")
    assert table is not None
    relation = engine.catalog.state().relation(table.relation)
    other = replace(relation, columns=tuple((f"x{name}", t) for name, t in relation.columns))
    if more:
        other = replace(relation, id=f"{relation.id}h9")
    with engine.writing() as lease:
        engine.catalog.commit(Change(put=(other,)), fence=lease.fence)
    before = sql.execute("SELECT * FROM totals ORDER BY 1").fetchall()
    sql.execute("INSERT INTO orders VALUES (20, 1, 1)")
    with pytest.raises(headrace.NeedsReinit) as caught:
        tables.refresh("totals")
    assert caught.value.code == "state-incompatible"
    assert sql.execute("SELECT * FROM totals ORDER BY 1").fetchall() == before
    assert tables.reinit("totals").mode == "FULL"
    assert_served(tables, sql, "totals")
    sql.execute("INSERT INTO orders VALUES (21, 1, 1)")
    assert tables.refresh("totals").mode == "DIFFERENTIAL"
    assert_served(tables, sql, "totals")


def test_suspend_and_resume(tables: headrace.Headrace, sql: psycopg.Connection) -> None:
    assert tables.suspend("totals").status == "SUSPENDED"
    assert tables.suspend("totals").reason == "suspended by hand"
    sql.execute("INSERT INTO orders VALUES (20, 1, 1)")
    for name in ("totals", "ns"):
        with pytest.raises(headrace.UserError) as caught:
            tables.refresh(name)
        assert caught.value.code == "table-suspended"
        assert "public.totals" in caught.value.message
    sql.execute("TRUNCATE orders; INSERT INTO orders VALUES (1, 1, 1), (2, 1, 1)")
    tables.create_stream_table("ids", "SELECT id FROM orders")
    assert statuses(tables)["totals"] == "SUSPENDED", "a copy of the source does not free it"
    assert tables.resume("totals").status == "ACTIVE"
    assert tables.resume("totals").status == "ACTIVE"
    assert [r.reason for r in tables.history("totals")] == ["first refresh"]
    assert tables.refresh("ns").mode == "DIFFERENTIAL"
    assert_served(tables, sql, "totals")
    # A reader that is suspended while its input is rebuilt follows when it goes on.
    tables.suspend("ns")
    tables.alter_stream_table("totals", query=TOTALS + " HAVING count(*) > 0")
    assert statuses(tables) == {"ids": "ACTIVE", "ns": "SUSPENDED", "totals": "ACTIVE"}
    assert tables.resume("ns").status == "ACTIVE"
    assert tables.history("ns")[0].reason == "resumed"
    assert tables.verify("ns", source=True).equal
    sql.execute("INSERT INTO orders VALUES (5, 5, 5)")
    assert tables.refresh("ns").mode == "DIFFERENTIAL"
    assert tables.verify("ns", source=True).equal


@pytest.mark.parametrize("lost", ["table", "source"])
def test_lost_logs_are_healed(
    dsn: str, tmp_path: Path, spark: SparkSession, sql: psycopg.Connection, lost: str
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 4, i FROM generate_series(1, 12) i")
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr:
        hr.create_stream_tables({"totals": TOTALS, "ns": "SELECT n FROM totals"})
        hr.create_stream_table("ids", "SELECT id FROM orders")
        state = hr._engine.catalog.state()
        table = state.stream_table("public", "totals")
        assert table is not None
        relation = table.relation if lost == "table" else table.inputs[0]
    shutil.rmtree(tmp_path / "store" / relation)
    sql.execute("INSERT INTO orders VALUES (20, 1, 1)")
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr:
        with pytest.raises(headrace.HeadraceError) as caught:
            hr.refresh("totals")
        assert "reinit" in str(caught.value)
        assert hr.reinit("totals").mode == "FULL"
        assert set(statuses(hr).values()) == {"ACTIVE"}
        for name in ("totals", "ids"):
            hr.refresh(name)
            assert_served(hr, sql, name)
        sql.execute("DELETE FROM orders WHERE id = 3")
        assert hr.refresh("ns").mode == "DIFFERENTIAL"
        assert hr.verify("ns", source=True).equal


def test_a_reader_does_not_resume_what_was_suspended_by_hand(
    tables: headrace.Headrace, sql: psycopg.Connection
) -> None:
    tables.suspend("ns")
    tables.alter_stream_table("totals", query=TOTALS + " HAVING count(*) > 0")
    with pytest.raises(headrace.UserError) as caught:
        tables.create_stream_table("more", "SELECT n + 1 AS n FROM ns")
    assert caught.value.code == "table-suspended"
    assert "public.ns" in caught.value.message
    assert statuses(tables) == {"ns": "SUSPENDED", "totals": "ACTIVE"}
    assert sql.execute("SELECT to_regclass('more')").fetchone() == (None,)


@pytest.mark.parametrize("lost", ["TABLE totals", "INDEX {index}"])
def test_a_served_table_or_its_index_that_a_user_dropped_is_mended(
    tables: headrace.Headrace, sql: psycopg.Connection, lost: str
) -> None:
    def indexes() -> list[str]:
        found = "SELECT indexname FROM pg_indexes WHERE tablename = 'totals'"
        return [name for (name,) in sql.execute(found)]

    (index,) = indexes()
    sql.execute(f"DROP {lost.format(index=index)}")
    sql.execute("INSERT INTO orders VALUES (19, 1, 1)")
    with pytest.raises(headrace.HeadraceError):
        tables.refresh("totals")
    assert tables.reinit("totals").mode == "FULL"
    assert_served(tables, sql, "totals")
    assert len(indexes()) == 1
    with pytest.raises(psycopg.Error, match="is a stream table"):
        sql.execute("DELETE FROM totals")
    sql.execute("INSERT INTO orders VALUES (20, 1, 1), (21, 9, 9)")
    assert tables.refresh("ns").mode == "DIFFERENTIAL"
    assert_served(tables, sql, "totals")
