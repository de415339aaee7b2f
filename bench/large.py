"""A change of millions of rows from its source to a served table: `make bench-large`.

A stream table is made over an empty source of six columns. Then ROWS rows are inserted in one
transaction and taken in by one refresh. The last line is one JSON object; `peak_mb` is what the
Python process had in memory at most, beside the driver's JVM of the default size.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import psycopg

import headrace

ROWS = 5_000_000
TABLE = (
    "CREATE TABLE orders (id int, customer int, product int, amount numeric(10,2), placed date,"
    " note text)"
)
INSERT = (
    "INSERT INTO orders SELECT i, i %% 1000000, i %% 500, (i %% 1000) + 0.25,"
    " DATE '2024-01-01' + i %% 365, 'note ' || i %% 97 FROM generate_series(1, %s) i"
)
QUERY = "SELECT id, customer, product, amount, placed, note FROM orders"
# The buffer of so many rows is larger than the limit, beyond which the source is copied anew.
MAX_BUFFER_MB = 100_000


def measure(hr: headrace.Headrace, rows: int) -> dict[str, object]:
    with psycopg.connect(hr.dsn, autocommit=True) as sql:
        sql.execute(TABLE)
        hr.set("max_buffer_mb", MAX_BUFFER_MB)
        hr.create_stream_table("shown", QUERY, refresh_mode="DIFFERENTIAL")
        sys.stderr.write("loading\n")
        sql.execute(INSERT, (rows,))
        sys.stderr.write("refreshing\n")
        before = peak_mb()
        started = time.perf_counter()
        refresh = hr.refresh("shown")
        seconds = time.perf_counter() - started
        found = sql.execute(
            "SELECT count(*), count(DISTINCT id), sum(amount) FROM shown"
        ).fetchone()
        wanted = sql.execute(
            "SELECT count(*), count(DISTINCT id), sum(amount) FROM orders"
        ).fetchone()
    if found != wanted or refresh.mode != "DIFFERENTIAL":
        raise SystemExit(f"{refresh.mode} gave {found} where {wanted} is right")
    return {
        "rows": refresh.rows_inserted,
        "seconds": round(seconds, 1),
        "phases": {phase: round(spent, 1) for phase, spent in refresh.phases.items()},
        "peak_mb_before": before,
        "peak_mb": peak_mb(),
    }


def peak_mb() -> int:
    """The most memory that this process had so far."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes // (1024 * 1024 if sys.platform == "darwin" else 1024)


def main() -> None:
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    rows = int(given.get("ROWS", ROWS))
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as home,
        headrace.connect(home=Path(home)) as hr,
    ):
        sys.stdout.write(json.dumps(measure(hr, rows)) + "\n")


if __name__ == "__main__":
    main()
