"""Copies of a narrow and a wide table, in turn: a first copy, COPY in both formats, JDBC."""

from __future__ import annotations

import os
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
from bench.capture_worlds import TABLES, width
from bench.copies.jdbc import NotAvailable, address, find_driver, measure, places
from bench.copies.options import Options
from headrace.engine.steps import CopySource, Step
from headrace.ingest.small import SMALL_BYTES

Sql = psycopg.Connection[Any]
COPIED = ("narrow", "wide")
# A sink that costs next to nothing, in a process of its own as any receiver is.
SINK = "cat > /dev/null"
FORMATS = ("binary", "text")


def say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def run(options: Options) -> dict[str, Any]:
    """Copy both tables in every way; the result, ready for JSON."""
    result: dict[str, Any] = {
        "rows": options.rows,
        "rounds": options.rounds,
        "cores": len(os.sched_getaffinity(0)),
        "tables": {},
    }
    with _project(options) as (hr, sql):
        parts = int(hr._engine.settings(hr._engine.catalog.state()).copy_parts)  # noqa: SLF001
        result["copy_parts"] = parts
        for table in COPIED:
            say(f"filling {table}")
            size = _fill(sql, table, options.rows)
            seconds = _measure(hr, sql, table, options)
            line = {
                "columns": width(table),
                "mb": round(size / 2**20, 1),
                "in_memory": size <= SMALL_BYTES,
                **figures(seconds, options.rows),
            }
            line["jdbc"] = _jdbc(hr.dsn, table, parts, options)
            result["tables"][table] = line
            say(f"{table}: {line}")
            sql.execute(f"DROP TABLE {table}".encode())
    return result


@contextmanager
def _project(options: Options) -> Iterator[tuple[headrace.Headrace, Sql]]:
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as home,
        headrace.connect(options.dsn, home=Path(home)) as hr,
        psycopg.connect(hr.dsn, autocommit=True) as sql,
    ):
        yield hr, sql


def _fill(sql: Sql, table: str, rows: int) -> int:
    """Create a table of so many rows; its size in bytes."""
    columns, values = TABLES[table]
    defined = ", ".join(columns)
    sql.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, n int, {defined})".encode())
    sql.execute(
        f"INSERT INTO {table} SELECT i, 0, {', '.join(values)}"
        f" FROM generate_series(1, {rows}) i".encode()
    )
    sql.execute(f"VACUUM ANALYZE {table}".encode())
    row = sql.execute("SELECT pg_table_size(%s::regclass)", (table,)).fetchone()
    assert row is not None
    return int(row[0])


def _measure(
    hr: headrace.Headrace, sql: Sql, table: str, options: Options
) -> dict[str, list[float]]:
    """Return the seconds of every way but JDBC; the ways take turns, after a round of warm-up."""
    seconds: dict[str, list[float]] = {}
    for number in range(1 + options.rounds):
        say(f"copying {table}, {f'round {number}' if number else 'warm-up'}")
        taken = {f"copy_to_{form}": _copy_to(sql, table, form) for form in FORMATS}
        taken |= _first_copy(hr, table, options.rows)
        if number:
            for way, one in taken.items():
                seconds.setdefault(way, []).append(one)
    return seconds


def _copy_to(sql: Sql, table: str, form: str) -> float:
    statement = f"COPY {table} TO PROGRAM '{SINK}' (FORMAT {form})".encode()
    return _timed(lambda: sql.execute(statement))


def _first_copy(hr: headrace.Headrace, table: str, rows: int) -> dict[str, float]:
    """Create a stream table over a source that is new, and drop both again.

    The copy by itself is `first_copy`; with all that makes the stream table, which counts the rows,
    it is `create`.
    """
    moments: dict[str, float] = {}
    name = f"of_{table}"

    def watch(when: str, step: Step) -> None:
        if isinstance(step, CopySource):
            if when in moments:
                raise SystemExit(f"{table} was copied twice")
            moments[when] = time.perf_counter()

    engine = hr._engine  # noqa: SLF001
    engine.watch = watch
    query = f"SELECT count(*) AS n FROM {table}"
    created = _timed(lambda: hr.create_stream_table(name, query))
    with psycopg.connect(hr.dsn) as sql:
        found = sql.execute(f"SELECT n FROM {name}".encode()).fetchone()
    if found != (rows,) or set(moments) != {"before", "after"}:
        raise SystemExit(f"{table}: {found} for {rows} rows, steps: {sorted(moments)}")
    hr.drop_stream_table(name)
    return {"first_copy": moments["after"] - moments["before"], "create": created}


def _jdbc(dsn: str, table: str, parts: int, options: Options) -> dict[str, Any]:
    try:
        driver = options.driver or find_driver(places())
        say(f"copying {table} by JDBC")
        taken = measure(driver, address(dsn), table, options.rows, parts, options.rounds)
    except NotAvailable as error:
        return {"not_available": str(error)}
    return {"rows_per_second": round(options.rows / statistics.median(taken))}


def figures(seconds: dict[str, list[float]], rows: int) -> dict[str, Any]:
    """Return rows a second of every way, and the time of a first copy over that of the others.

    Rates are of the median times; ratios are medians of the ratios within each round.
    """
    first = seconds["first_copy"]
    ratios = {
        way: [one / other for one, other in zip(first, times, strict=True)]
        for way, times in seconds.items()
        if way != "first_copy"
    }
    return {
        "rows_per_second": {
            way: round(rows / statistics.median(times)) for way, times in seconds.items()
        },
        "first_copy_over": {way: round(statistics.median(r), 2) for way, r in ratios.items()},
    }


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
