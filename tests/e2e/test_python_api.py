"""The Python door: what users see of a stream table, in PostgreSQL, in Python and in Spark."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
QUERY = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def totals(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE orders (id int, customer int, amount numeric(10,2))")
    sql.execute("INSERT INTO orders SELECT i, i % 3, i FROM generate_series(1, 10) i")
    project.create_stream_table("totals", QUERY, refresh_mode="DIFFERENTIAL")
    return project


def test_status_history_and_explain(totals: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute("INSERT INTO orders VALUES (11, NULL, 1)")
    refresh = totals.refresh("totals")
    assert refresh.mode == "DIFFERENTIAL"
    assert refresh.spark_jobs >= 1
    assert set(refresh.phases) >= {"cut", "plan", "read", "compute", "commit", "publish"}
    (status,) = totals.status()
    assert (status.name, status.status, status.epoch) == ("public.totals", "ACTIVE", refresh.epoch)
    assert status.lag is not None and status.lag >= timedelta(0)
    row = sql.execute("SELECT name, status, epoch, as_of, lag FROM headrace.status").fetchone()
    assert row is not None
    assert row[:4] == (status.name, "ACTIVE", status.epoch, status.as_of)
    newest, first = totals.history("totals")
    assert (newest.mode, first.mode) == ("DIFFERENTIAL", "FULL")
    assert (newest.rows_inserted, newest.rows_deleted, newest.epoch) == (1, 0, refresh.epoch)
    explanation = totals.explain("totals")
    assert explanation.key == ("customer",)
    assert "stored sums" in str(explanation)
    (stage,) = explanation.stages
    assert "change of public.orders" in stage.reads
    assert (explanation.stratum, status.stratum, status.scc_id) == (1, 1, None)
    (edge,) = status.edges
    assert (edge.read, edge.operators) == ("public.orders", ("aggregate",))
    assert explanation.edges == status.edges
    assert "public.orders: not monotone (aggregate)" in str(explanation)
    (stratum,) = totals.stratum_status()
    assert (stratum.stratum, stratum.members) == (1, ("public.totals",))
    assert totals.explain_strata(["totals"]).edges == status.edges
    assert totals.scc_status() == ()
    assert "<- - public.orders [aggregate]" in totals.graph()
    before = totals.explain(query="SELECT id FROM orders WHERE amount > 5")
    assert before.key == ()
    assert len(totals.status()) == 1


def test_served_tables_are_read_only(totals: headrace.Headrace, sql: psycopg.Connection) -> None:
    for statement in (
        "INSERT INTO totals VALUES (9, 9, 9)",
        "UPDATE totals SET n = 0",
        "DELETE FROM totals",
        "TRUNCATE totals",
    ):
        with pytest.raises(psycopg.Error) as caught:
            sql.execute(statement)
        assert caught.value.sqlstate == "HR001"
        assert "stream table" in str(caught.value)


def test_a_full_refresh_is_applied_as_a_difference(
    totals: headrace.Headrace, sql: psycopg.Connection
) -> None:
    places = dict(sql.execute("SELECT customer, ctid FROM totals").fetchall())
    sql.execute("INSERT INTO orders VALUES (11, 1, 1)")
    refresh = totals.refresh("totals", mode="FULL")
    assert (refresh.mode, refresh.reason) == ("FULL", "requested")
    assert (refresh.rows_inserted, refresh.rows_deleted) == (1, 1)
    assert_served(totals, sql, "totals")
    after = dict(sql.execute("SELECT customer, ctid FROM totals").fetchall())
    assert [c for c in places if places[c] != after[c]] == [1]
    sql.execute("DELETE FROM orders WHERE id = 11")
    assert totals.refresh("totals").mode == "DIFFERENTIAL"
    assert_served(totals, sql, "totals")


def test_grants_indexes_and_views_of_users_survive(
    totals: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE VIEW mine AS SELECT total FROM totals")
    sql.execute("CREATE INDEX my_index ON totals (total)")
    sql.execute("GRANT SELECT ON totals TO PUBLIC")
    sql.execute("UPDATE orders SET amount = amount + 1")
    totals.refresh("totals", mode="FULL")
    sql.execute("UPDATE orders SET amount = amount + 1")
    totals.refresh("totals")
    assert (
        sql.execute("SELECT sum(total) FROM mine").fetchone()
        == sql.execute("SELECT sum(amount) FROM orders").fetchone()
    )
    with pytest.raises(headrace.HeadraceError) as caught:
        totals.drop_stream_table("totals")
    assert caught.value.code == "has-dependents"
    assert "mine" in str(caught.value)
    sql.execute("DROP VIEW mine")
    totals.drop_stream_table("totals")
    assert totals.status() == ()


def test_spark_reads_the_published_epoch(
    totals: headrace.Headrace, sql: psycopg.Connection
) -> None:
    frame = totals.table("totals")
    before = {tuple(row) for row in frame.collect()}
    sql.execute("DELETE FROM orders WHERE customer = 1")
    totals.refresh("totals")
    after = {tuple(row) for row in totals.table("totals").collect()}
    assert after == set(sql.execute("TABLE totals").fetchall())
    assert {tuple(row) for row in frame.collect()} == before != after


def test_verify_finds_what_somebody_changed(
    totals: headrace.Headrace, sql: psycopg.Connection
) -> None:
    assert totals.verify("totals", source=True).equal
    with sql.transaction():
        sql.execute("SET LOCAL headrace.publishing = 'on'")
        sql.execute("UPDATE totals SET n = n + 1 WHERE customer = 1")
    receipt = totals.verify("totals")
    assert not receipt.equal
    assert (receipt.missing, receipt.surplus) == (1, 1)
    assert [r.equal for r in totals._engine.catalog.receipts()] == [False, True]


def test_the_last_reader_takes_capture_with_it(
    totals: headrace.Headrace, sql: psycopg.Connection
) -> None:
    totals.create_stream_table("more", "SELECT id FROM orders")
    assert len(totals._engine.catalog.state().sources) == 1, "one capture however many readers"
    totals.drop_stream_table("totals")
    assert len(totals._engine.catalog.state().sources) == 1
    totals.drop_stream_table("more")
    assert totals._engine.catalog.state().sources == ()
    assert sql.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal").fetchall() == []
    assert sql.execute("SELECT to_regclass('totals')").fetchone() == (None,)
    assert list((totals.home / "store").iterdir()) == []


def test_names_that_need_quotes(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute('CREATE SCHEMA "S.x"')
    sql.execute(
        'CREATE TABLE "S.x"."Or""der" ("Id" int, "select" int, "_weight" int, "c1" text, "ü ü" int)'
    )
    sql.execute("""INSERT INTO "S.x"."Or""der" VALUES (1, 2, 3, 'x', 4)""")
    project.create_stream_table(
        '"S.x"."Out""put"',
        'SELECT "Id", "select", "_weight", "c1", "ü ü" AS "Ü" FROM "S.x"."Or""der"',
    )
    sql.execute("""INSERT INTO "S.x"."Or""der" VALUES (5, 6, 7, 'y', 8)""")
    project.refresh('"S.x"."Out""put"')
    rows = sql.execute("""SELECT * FROM "S.x"."Out""put" ORDER BY 1""").fetchall()
    assert rows == [(1, 2, 3, "x", 4), (5, 6, 7, "y", 8)]
    assert project.verify('"S.x"."Out""put"').equal
    project.drop_stream_table('"S.x"."Out""put"')


def test_settings(project: headrace.Headrace) -> None:
    project.set("lease_wait", 5)
    assert project.settings()["lease_wait"] == 5
    project.set("lease_wait", None)
    assert project.settings()["lease_wait"] == 60
