"""What a crash leaves behind: beyond the pins nothing counts, and nobody has to clean up."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.store import DeltaStore
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
QUERY = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer"


class Crash(BaseException):
    """Stands for the end of the process at this very place."""


def crash(*_: object, **__: object) -> None:
    raise Crash


PLACES = [
    "headrace.ingest.from_buffer.acknowledge",
    "headrace.refresh.advance.compute",
    "headrace.refresh.run.publish",
    "headrace.publish.publish.apply_change",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_crash_in_a_refresh_is_made_good(
    project: headrace.Headrace,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    sql.execute("CREATE TABLE orders (id int, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 3, i FROM generate_series(1, 10) i")
    project.create_stream_table("totals", QUERY)
    for round_ in range(2):
        before = sql.execute("SELECT * FROM totals ORDER BY 1").fetchall()
        for _ in range(2):
            sql.execute("UPDATE orders SET amount = amount + 1, customer = (customer + 1) % 4")
            with monkeypatch.context() as patched:
                patched.setattr(place, crash)
                with pytest.raises(Crash):
                    project.refresh("totals")
            assert sql.execute("SELECT * FROM totals ORDER BY 1").fetchall() == before
        sql.execute("INSERT INTO orders VALUES (%s, 1, 1)", [100 + round_])
        project.refresh("totals")
        assert_served(project, sql, "totals")
    assert project.verify("totals", source=True).equal


def test_another_process_takes_over(
    project: headrace.Headrace,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    dsn: str,
    tmp_path: Path,
    spark: object,
) -> None:
    sql.execute("CREATE TABLE orders (id int, customer int, amount int)")
    project.create_stream_table("totals", QUERY)
    sql.execute("INSERT INTO orders VALUES (1, 1, 1)")
    with monkeypatch.context() as patched:
        patched.setattr("headrace.refresh.run.publish", crash)
        with pytest.raises(Crash):
            project.refresh("totals")
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as other:
        other.refresh("totals")
        assert_served(other, sql, "totals")
        sql.execute("INSERT INTO orders VALUES (2, 2, 2)")
        project.refresh("totals")
        assert_served(project, sql, "totals")
        sql.execute("INSERT INTO orders VALUES (3, 2, 2)")
        other.refresh("totals")
        assert_served(other, sql, "totals")
        assert other.verify("totals", source=True).equal


@pytest.mark.parametrize(
    "place",
    [
        "headrace.ingest.ingest.set_up",
        "headrace.ingest.from_buffer.copy_source",
        "headrace.ingest.from_buffer.acknowledge",
        "headrace.lifecycle.build.advance",
        "headrace.publish.publish.create_served",
    ],
)
def test_a_crash_in_create_leaves_no_capture_behind(
    project: headrace.Headrace,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    sql.execute("CREATE TABLE orders (id int, customer int, amount int)")
    sql.execute("INSERT INTO orders VALUES (1, 1, 1)")
    with monkeypatch.context() as patched:
        patched.setattr(place, crash)
        patched.setattr("headrace.lifecycle.build.remove_idle_sources", lambda *_: None)
        patched.setattr(DeltaStore, "drop", lambda *_: None)
        with pytest.raises(Crash):
            project.create_stream_table("totals", QUERY)
    sql.execute("INSERT INTO orders VALUES (2, 2, 2)")
    sql.execute("CREATE TABLE other (id int)")
    project.create_stream_table("ids", "SELECT id FROM other")
    triggers = sql.execute(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = 'orders'::regclass"
    ).fetchall()
    assert triggers == [], "whoever writes next takes down what nobody reads"
    project.create_stream_table("totals", QUERY)
    assert_served(project, sql, "totals")
