"""Users' views in queries are bound in place, and followed when they change."""

from __future__ import annotations

import psycopg
import pytest

import headrace

pytestmark = pytest.mark.e2e


@pytest.fixture
def views(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE SCHEMA other")
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 4, i FROM generate_series(1, 12) i")
    sql.execute("CREATE VIEW paid AS SELECT id, customer AS who, amount FROM orders WHERE id <> 3")
    sql.execute("CREATE VIEW other.twice (who, twice) AS SELECT who, amount * 2 FROM paid")
    project.create_stream_table("sums", "SELECT who, sum(twice) AS s FROM other.twice GROUP BY who")
    return project


def check(hr: headrace.Headrace, sql: psycopg.Connection, name: str, query: str) -> None:
    assert sorted(sql.execute(f"TABLE {name}")) == sorted(sql.execute(query))
    receipt = hr.verify(name, source=True)
    assert receipt.equal, receipt.detail


QUERY = "SELECT who, sum(twice) AS s FROM other.twice GROUP BY who"


def test_views_over_views_and_over_stream_tables(
    views: headrace.Headrace, sql: psycopg.Connection
) -> None:
    check(views, sql, "sums", QUERY)
    sql.execute("CREATE VIEW rich AS SELECT who, s FROM sums WHERE s > 30")
    views.create_stream_table(
        "richest", "SELECT r.who, r.s, p.id FROM rich r JOIN paid p USING (who)"
    )
    sql.execute(
        "UPDATE orders SET amount = amount + 5 WHERE id < 4; DELETE FROM orders WHERE id = 8"
    )
    assert views.refresh("richest").mode == "DIFFERENTIAL"
    check(views, sql, "sums", QUERY)
    check(views, sql, "richest", "SELECT r.who, r.s, p.id FROM rich r JOIN paid p USING (who)")
    assert views.refresh("richest").mode == "SKIPPED"
    # Dropping what a view of a user reads is refused, naming the view.
    with pytest.raises(headrace.UserError) as caught:
        views.drop_stream_table("sums", cascade=True)
    assert (caught.value.code, "rich" in (caught.value.detail or "")) == ("has-dependents", True)


def test_a_changed_view_rebuilds_the_table(
    views: headrace.Headrace, sql: psycopg.Connection
) -> None:
    views.create_stream_table("total", "SELECT sum(s) AS s FROM sums")
    sql.execute(
        "CREATE OR REPLACE VIEW paid AS SELECT id, customer AS who, amount + 1 AS amount"
        " FROM orders"
    )
    assert views.refresh("total").mode == "FULL"
    assert "view public.paid was changed" in views.history("sums")[0].reason
    check(views, sql, "sums", QUERY)
    check(views, sql, "total", f"SELECT sum(s) FROM ({QUERY}) x")
    sql.execute("INSERT INTO orders VALUES (30, 1, 1)")
    assert views.refresh("total").mode == "DIFFERENTIAL"
    check(views, sql, "total", f"SELECT sum(s) FROM ({QUERY}) x")
    # One that cannot be maintained stops it, with the reason.
    sql.execute(
        "CREATE OR REPLACE VIEW paid AS SELECT id, customer AS who,"
        " (amount + random())::int AS amount FROM orders"
    )
    with pytest.raises(headrace.UserError) as caught:
        views.refresh("total")
    assert caught.value.code == "table-suspended"
    assert "view public.paid was changed" in (caught.value.detail or "")
    assert {t.name: t.status for t in views.status()} == {
        "public.sums": "SUSPENDED",
        "public.total": "ACTIVE",
    }
    sql.execute("DROP VIEW paid CASCADE")
    with pytest.raises(headrace.UserError) as caught:
        views.resume("sums")
    assert caught.value.code == "unknown-table"
    query = "SELECT customer AS who, sum(amount) AS s FROM orders GROUP BY customer"
    assert views.alter_stream_table("sums", query=query).status == "ACTIVE"
    check(views, sql, "total", f"SELECT sum(s) FROM ({query}) x")


def test_a_dropped_view_suspends(views: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute("DROP VIEW other.twice")
    with pytest.raises(headrace.UserError) as caught:
        views.refresh("sums")
    assert caught.value.code == "table-suspended"
    assert "view other.twice was dropped" in (caught.value.detail or "")
    sql.execute("CREATE VIEW other.twice AS SELECT who, amount * 3 AS twice FROM paid")
    assert views.resume("sums").status == "ACTIVE"
    check(views, sql, "sums", QUERY)


def test_what_is_not_a_view_is_still_refused(
    views: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE MATERIALIZED VIEW kept AS SELECT 1 AS a")
    sql.execute("CREATE VIEW over_kept AS SELECT a FROM kept")
    for name in ("kept", "over_kept", "headrace.status", "pg_tables"):
        with pytest.raises(headrace.UserError) as caught:
            views.create_stream_table("x", f"SELECT * FROM {name}")
        assert caught.value.code == "unsupported-source", name
