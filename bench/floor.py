"""What a refresh costs beyond an empty Spark job: `make bench-floor`.

One run measures, over a source of a million rows and six columns, an aggregate and a join that
feeds an aggregate: an empty job, a refresh without changes, a refresh after 1,000 changed rows
(median of twenty, after a warm-up), and a full recompute. Figures of one run compare with each
other; the machine's own noise is in all of them.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

import headrace
from headrace.catalog.records import Refresh

ROWS, CHANGED, ROUNDS = 1_000_000, 1_000, 20
# The JVM compiles what runs often: Spark's planner is at its speed after some tens of queries.
WARM_UP = 40
SCHEMA = """
CREATE TABLE orders (id int PRIMARY KEY, customer int, product int, amount numeric(10,2),
    placed date, note text);
CREATE TABLE customers (id int PRIMARY KEY, region int, name text, since date, rate int, code text);
INSERT INTO orders SELECT i, i % 10000, i % 500, (i % 1000) + 0.25,
    DATE '2024-01-01' + i % 365, 'note ' || i % 97 FROM generate_series(1, {rows}) i;
INSERT INTO customers SELECT i, i % 50, 'name ' || i, DATE '2020-01-01' + i % 1000, i % 7, 'c'
    FROM generate_series(0, 9999) i;
"""
QUERIES = {
    "aggregate": "SELECT customer, count(*) AS orders, sum(amount) AS amount, avg(amount) AS mean"
    " FROM orders GROUP BY customer",
    "join": "SELECT c.region, count(*) AS orders, sum(o.amount) AS amount"
    " FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region",
}


BATCHES = itertools.count()


def change(sql: psycopg.Connection[Any], rows: int = ROWS) -> None:
    """A thousand changed rows: half of them updated, a quarter deleted, a quarter inserted."""
    quarter, number = CHANGED // 4, next(BATCHES)
    first = number * 4 * CHANGED % (rows // 2)
    with sql.transaction():
        sql.execute(
            "UPDATE orders SET amount = amount + 1 WHERE id BETWEEN %s AND %s",
            (first + 1, first + 2 * quarter),
        )
        sql.execute(
            "DELETE FROM orders WHERE id IN (SELECT id FROM orders WHERE id > %s ORDER BY id"
            " LIMIT %s)",
            (rows // 2 + number * CHANGED % (rows // 2), quarter),
        )
        sql.execute(
            "INSERT INTO orders SELECT i, i %% 10000, 1, 2, CURRENT_DATE, 'new'"
            " FROM generate_series(%s::int, %s::int) i",
            (2 * rows + number * CHANGED, 2 * rows + number * CHANGED + quarter - 1),
        )


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def measure(hr: headrace.Headrace, sql: psycopg.Connection[Any], name: str) -> dict[str, Any]:
    hr.create_stream_table(name, QUERIES[name], refresh_mode="DIFFERENTIAL")
    refreshes: list[Refresh] = []
    session = hr._spark.profile("tiny")  # noqa: SLF001
    times, idle, empties = [], [], []
    # The three are measured in turn, so that whatever else the machine does meets all of them.
    for _ in range(WARM_UP + ROUNDS):
        change(sql)
        empties.append(milliseconds(lambda: session.range(10).count()))
        times.append(milliseconds(lambda: refreshes.append(hr.refresh(name))))
        idle.append(milliseconds(lambda: hr.refresh(name)))
    skipped = hr.refresh(name)
    full = [milliseconds(lambda: hr.refresh(name, mode="FULL")) for _ in range(3)]
    if not hr.verify(name).equal:
        raise SystemExit(f"{name} is not what its query says")
    empty, refresh = statistics.median(empties[WARM_UP:]), statistics.median(times[WARM_UP:])
    measured = refreshes[WARM_UP:]
    phases = {
        phase: round(statistics.median(r.phases.get(phase, 0.0) for r in measured) * 1000, 1)
        for phase in measured[0].phases
    }
    return {
        "empty_job_ms": round(empty, 1),
        "no_change_ms": round(statistics.median(idle[WARM_UP:]), 1),
        "no_change_spark_jobs": skipped.spark_jobs,
        "refresh_ms": round(refresh, 1),
        "phases_ms": phases,
        "spark_jobs": max(r.spark_jobs for r in measured),
        "full_ms": round(statistics.median(full), 1),
        "refresh_over_empty": round(refresh / empty, 2),
        "full_over_refresh": round(statistics.median(full) / refresh, 2),
    }


@contextmanager
def project(rows: int) -> Iterator[tuple[headrace.Headrace, psycopg.Connection[Any]]]:
    """A project of its own with the two source tables filled."""
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as home,
        headrace.connect(home=Path(home)) as hr,
        psycopg.connect(hr.dsn, autocommit=True) as sql,
    ):
        sys.stderr.write("loading\n")
        for statement in SCHEMA.format(rows=rows).split(";\n"):
            if statement.strip():
                sql.execute(statement)  # type: ignore[call-overload]
        sql.execute("ANALYZE")
        yield hr, sql


def main() -> None:
    with project(ROWS) as (hr, sql):
        result = {}
        for name in QUERIES:
            sys.stderr.write(f"measuring {name}\n")
            result[name] = measure(hr, sql, name)
        sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
