"""Two writers at once: the lease lets one in, and its number keeps a late one out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.engine.steps import Publish, Step
from headrace.errors import HeadraceError
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
QUERY = "SELECT k, count(*) AS n, sum(v) AS v FROM t GROUP BY k"
ROUNDS = 4


@pytest.fixture
def second(
    project: headrace.Headrace, dsn: str, tmp_path: Path, spark: object
) -> Iterator[headrace.Headrace]:
    """The same project, opened once more."""
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as opened:  # type: ignore[arg-type]
        yield opened


@pytest.fixture
def filled(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE t (k int, v int)")
    sql.execute("INSERT INTO t SELECT i % 5, i FROM generate_series(1, 50) i")
    project.create_stream_table("totals", QUERY)
    return project


def test_both_refresh_while_rows_arrive(
    filled: headrace.Headrace, second: headrace.Headrace, sql: psycopg.Connection
) -> None:
    failures: list[BaseException] = []

    def refresh(hr: headrace.Headrace) -> None:
        try:
            for _ in range(ROUNDS):
                hr.refresh("totals")
        except BaseException as error:  # noqa: BLE001  the test shows it
            failures.append(error)

    threads = [threading.Thread(target=refresh, args=[hr]) for hr in (filled, second)]
    for thread in threads:
        thread.start()
    number = 0
    while any(thread.is_alive() for thread in threads):
        number += 1
        sql.execute("INSERT INTO t VALUES (%s, 1)", [number % 7])
        threads[0].join(0.02)
    for thread in threads:
        thread.join()
    assert failures == []
    filled.refresh("totals")
    assert_served(filled, sql, "totals")
    assert second.verify("totals", source=True).equal


def test_a_writer_that_lost_its_lease_publishes_nothing(
    filled: headrace.Headrace, second: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("INSERT INTO t VALUES (1, 1000)")

    def overtaken(when: str, step: Step) -> None:
        """Just before it publishes, its lease's connection is cut, and the other goes ahead."""
        if when == "before" and isinstance(step, Publish):
            filled._engine.watch = lambda when, step: None
            sql.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks"
                " WHERE locktype = 'advisory' AND granted"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            second.refresh("totals")

    filled._engine.watch = overtaken
    with pytest.raises(HeadraceError) as raised:
        filled.refresh("totals")
    assert raised.value.code in ("lease-lost", "connection-lost")
    assert_served(second, sql, "totals")
    sql.execute("INSERT INTO t VALUES (2, 2000)")
    assert filled.refresh("totals").mode == "DIFFERENTIAL"
    assert_served(filled, sql, "totals")
    assert filled.verify("totals", source=True).equal
