"""A table that `max_change_rows` has stopped: resumed with the change, or rebuilt."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from headrace.errors import UserError
from tests.e2e.oracle import assert_served
from tests.e2e.walks import assert_walks, walks

__all__ = ("walks",)

pytestmark = pytest.mark.e2e

TOTALS = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"


def stop(hr: headrace.Headrace, sql: psycopg.Connection, name: str = "totals") -> None:
    """Have a change come that is larger than the five rows that are allowed."""
    sql.execute(
        "INSERT INTO orders SELECT n + i, i % 4, i FROM generate_series(1, 6) i,"
        " (SELECT max(id) AS n FROM orders) AS known"
    )
    with pytest.raises(UserError) as caught:
        hr.refresh(name)
    assert caught.value.code == "change-too-large"
    assert standing(hr)[name] == "SUSPENDED"


def standing(hr: headrace.Headrace) -> dict[str, str]:
    return {table.name.removeprefix("public."): table.status for table in hr.status()}


@pytest.fixture
def orders(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 4, i FROM generate_series(1, 12) i")
    project.create_stream_table("totals", TOTALS, refresh_mode="DIFFERENTIAL", max_change_rows=5)
    return project


def test_the_change_is_taken_in(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    relation = orders._engine.catalog.state().stream_tables[0].relation
    stop(orders, sql)
    assert orders.resume("totals", mode="apply").status == "ACTIVE"
    assert orders.history("totals")[0].mode == "DIFFERENTIAL"
    assert_served(orders, sql, "totals")
    stop(orders, sql)  # later changes count again
    (done,) = orders.run("ALTER STREAM TABLE totals RESUME APPLY")
    assert done.act == "resumed"
    assert orders.history("totals")[0].mode == "DIFFERENTIAL"
    assert_served(orders, sql, "totals")
    (table,) = orders._engine.catalog.state().stream_tables
    assert table.relation == relation, "nothing was rebuilt"
    assert orders.verify("totals", source=True).equal


def test_the_table_is_rebuilt(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    for resume in (
        lambda: orders.resume("totals"),
        lambda: orders.resume("totals", mode="rebuild"),
        lambda: orders.run("ALTER STREAM TABLE totals RESUME REBUILD"),
    ):
        stop(orders, sql)
        resume()
        latest = orders.history("totals")[0]
        assert (latest.mode, latest.reason) == ("FULL", "resumed")
        assert_served(orders, sql, "totals")


def test_others_cannot_take_anything_in(orders: headrace.Headrace, sql: psycopg.Connection) -> None:
    """What was suspended otherwise may lack more than a change."""
    orders.suspend("totals")
    for mode, message in (("apply", "not suspended by max_change_rows"), ("never", "'never'")):
        with pytest.raises(UserError, match=message):
            orders.resume("totals", mode=mode)
    assert standing(orders) == {"totals": "SUSPENDED"}
    orders.resume("totals")
    stop(orders, sql)
    sql.execute("ALTER TABLE orders RENAME amount TO sum")
    with pytest.raises(UserError):
        orders.resume("totals", mode="apply")
    assert standing(orders) == {"totals": "SUSPENDED"}


def test_a_cycle_goes_on_as_one(walks: headrace.Headrace, sql: psycopg.Connection) -> None:
    walks.alter_stream_table("odd", max_change_rows=1)
    sql.execute("INSERT INTO edges VALUES (2, 3), (8, 7)")
    with pytest.raises(UserError, match="max_change_rows"):
        walks.refresh("even")
    stopped = {name for name, status in standing(walks).items() if status == "SUSPENDED"}
    assert stopped == {"even", "odd"}
    walks.resume("even", mode="apply")
    assert set(standing(walks).values()) == {"ACTIVE"}
    assert walks.history("even")[0].mode == "DIFFERENTIAL"
    assert_walks(walks, sql)
