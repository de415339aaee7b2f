"""Statements about stream tables, through the Python door."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


@pytest.fixture
def orders(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(12, 2))")
    sql.execute("INSERT INTO orders VALUES (1, 'ada', 10), (2, 'ada', 5), (3, 'bob', 7)")
    return project


def test_the_statements_of_the_page(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## headrace run")[2]
    text = section.partition("```sql\n")[2].partition("```")[0]
    assert [(one.act, one.table) for one in orders.run(text)] == [
        ("created", "public.revenue"),
        ("created", "public.large"),
        ("altered", "public.revenue"),
        ("altered", "public.large"),
        ("altered", "public.large"),
        ("suspended", "public.larger"),
        ("resumed", "public.larger"),
        ("resumed", "public.revenue"),
        ("refreshed (SKIPPED)", "public.larger"),
        ("refreshed (FULL)", "public.revenue"),
        ("verified by spark (equal)", "public.revenue"),
        ("verified by postgres (equal)", "public.revenue"),
        ("verified by spark (equal)", "public.revenue"),
        ("dropped", "public.larger"),
        ("dropped", "public.revenue"),
    ]
    assert orders.status() == ()


def test_creates_in_a_row_are_made_together(
    orders: headrace.Headrace, sql: psycopg.Connection
) -> None:
    text = """
        -- In the wrong order, on purpose.
        CREATE OR REPLACE STREAM TABLE top AS SELECT customer FROM sums WHERE total > 8;
        CREATE STREAM TABLE sums WITH (refresh_mode = 'differential') AS
            SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
    """
    orders.run(text)
    assert {t.name: t.refresh_mode for t in orders.status()} == {
        "public.sums": "DIFFERENTIAL",
        "public.top": "AUTO",
    }
    assert sql.execute("TABLE top").fetchall() == [("ada",)]
    assert len({r.finished_at for r in orders.history()}) == 1, "one publish"
    # Both replaced, and one of them reads a column that the other only gets now.
    orders.run(
        """CREATE OR REPLACE STREAM TABLE top AS SELECT customer, n FROM sums WHERE n > 1;
        CREATE OR REPLACE STREAM TABLE sums AS
            SELECT customer, count(*) AS n FROM orders GROUP BY customer"""
    )
    assert sql.execute("TABLE top").fetchall() == [("ada", 2)]
    assert_served(orders, sql, "sums")
    assert orders.verify("top", source=True).equal
    with pytest.raises(headrace.UserError) as caught:
        orders.run("REFRESH STREAM TABLE top;\nCREATE STREAM TABLE x AS SELECT y FROM top")
    assert caught.value.code == "unknown-column"
    assert "line 2, column 1" in (caught.value.detail or "")
    assert len(orders.status()) == 2
