"""Many small epochs: files stay few, results stay exact."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
EPOCHS, MOST_FILES = 40, 24


def test_logs_stay_short(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE orders (id int, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 7, i FROM generate_series(1, 50) i")
    project.create_stream_table(
        "totals", "SELECT customer, count(*) AS n, sum(amount) AS s FROM orders GROUP BY customer"
    )
    for epoch in range(EPOCHS):
        sql.execute("UPDATE orders SET amount = amount + 1 WHERE id %% 10 = %s", [epoch % 10])
        assert project.refresh("totals").mode == "DIFFERENTIAL"
    assert_served(project, sql, "totals")
    state = project._engine.catalog.state()
    for relation in state.relations:
        files = project._engine.store.files(relation.id, relation.pin, 0, relation.pin.epoch)
        assert len(files) < MOST_FILES
    assert project.verify("totals", source=True).equal
