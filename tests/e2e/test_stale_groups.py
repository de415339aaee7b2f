"""A source that had to be captured again and could not: its readers are rebuilt when it can be."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from headrace.engine.steps import Step
from headrace.errors import Transient
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

DIAMOND = {
    "by_customer": "SELECT customer, count(*) AS n FROM orders GROUP BY customer",
    "by_status": "SELECT status, count(*) AS n FROM orders GROUP BY status",
    "compared": "SELECT s.status, s.n, t.total FROM by_status s"
    " CROSS JOIN (SELECT sum(n) AS total FROM by_customer) t",
}


@pytest.fixture
def stale(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    """A diamond all of whose tables lack a source that was captured again and not yet copied."""
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, status text)")
    sql.execute("INSERT INTO orders SELECT i, i % 3, 's' || i % 2 FROM generate_series(1, 9) i")
    project.create_stream_tables(DIAMOND)
    (source,) = project._engine.catalog.state().sources
    for file in (project.home / "store" / source.relation).rglob("*.parquet"):
        file.unlink()

    def watch(when: str, step: Step) -> None:
        if (when, type(step).__name__) == ("after", "RecordSources"):
            raise Transient("source-locked", "public.orders is locked by another session")

    project._engine.watch = watch
    with pytest.raises(Transient):
        project.repair()
    project._engine.watch = lambda when, step: None
    statuses = {table.name: table.status for table in project.status()}
    assert statuses["public.by_customer"] == statuses["public.by_status"] == "INITIALIZING"
    return project


@pytest.mark.parametrize("name", DIAMOND)
@pytest.mark.parametrize("command", ["refresh", "reinit"])
def test_both_sides_of_a_diamond(
    stale: headrace.Headrace, sql: psycopg.Connection, name: str, command: str
) -> None:
    if command == "refresh":
        stale.refresh(name)
    else:
        stale.reinit(name)
    sql.execute("INSERT INTO orders VALUES (10, 1, 's9'); DELETE FROM orders WHERE id = 3")
    for one in DIAMOND:
        stale.refresh(one)
        assert_served(stale, sql, one)
    assert {table.status for table in stale.status()} == {"ACTIVE"}
