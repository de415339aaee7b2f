"""A process that dies while it rebuilds tables: whoever writes next finds all of it in order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace
from headrace.engine.steps import Step
from tests.e2e.oracle import assert_served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

TOTALS = "SELECT customer, count(*) AS n FROM orders GROUP BY customer"
ALTERED = "SELECT customer, count(*) AS n, sum(extra) AS extra FROM orders GROUP BY customer"


class Crash(BaseException):
    """Nobody cleans up after it."""


@pytest.mark.parametrize(
    ("when", "kind"),
    [
        ("after", "RecordLogs"),
        ("after", "CreateLog"),
        ("after", "RecordSources"),
        ("after", "Acknowledge"),
        ("before", "Publish"),
        ("after", "Publish"),
        ("after", "DropLog"),
    ],
)
def test_an_alteration_that_dies_is_made_good(
    dsn: str,
    tmp_path: Path,
    spark: SparkSession,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
    kind: str,
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int)")
    sql.execute("INSERT INTO orders SELECT i, i % 3 FROM generate_series(1, 9) i")

    def watch(at: str, step: Step) -> None:
        if (at, type(step).__name__) == (when, kind):
            raise Crash

    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr:
        hr.create_stream_tables({"totals": TOTALS, "ns": "SELECT n FROM totals"})
        hr.create_stream_table("ids", "SELECT id FROM orders")
        # The new column makes the daemon capture the source again, for all of its readers.
        sql.execute("ALTER TABLE orders ADD COLUMN extra int DEFAULT 5")
        with monkeypatch.context() as patched:
            patched.setattr("headrace.lifecycle.build._clean_up", lambda *_: None)
            patched.setattr(hr._engine, "watch", watch)
            with pytest.raises(Crash):
                hr.alter_stream_table("totals", query=ALTERED)
    sql.execute("INSERT INTO orders VALUES (10, 1, 1)")
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr:
        for name in ("ids", "ns"):
            hr.refresh(name)
        assert_served(hr, sql, "ids")
        assert_served(hr, sql, "totals")
        assert hr.verify("ns", source=True).equal
        hr.alter_stream_table("totals", query=ALTERED)
        assert_served(hr, sql, "totals")
        sql.execute("DELETE FROM orders WHERE id = 4")
        for name in ("ids", "ns"):
            assert hr.refresh(name).mode == "DIFFERENTIAL"
        assert hr.verify("ns", source=True).equal
        relations = {relation.id for relation in hr._engine.catalog.state().relations}
        assert len(relations) == 4
        assert {path.name for path in (tmp_path / "store").iterdir()} == relations
