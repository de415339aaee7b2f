"""What partitions spare a publish and a reader: `make bench-partitions`.

A served table of ROWS rows, a hundred days of them, once partitioned by day and once not. The same
changes are published into both, without Spark: a tenth of a percent of the rows, in three days and
in all of them, and one percent in three days, each as updates of rows that are there. Then one day
is read. For each the last line has the milliseconds, the pages of tables and indexes that were
looked at (in memory or not), the rows that were looked at by scans and by indexes, and the bytes of
WAL that were written. `ROWS=1000000` makes it smaller.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog import PostgresCatalog
from headrace.catalog.records import OutputColumn, StreamTable
from headrace.embedded import EmbeddedServer
from headrace.publish.apply import apply_change
from headrace.publish.load import load_change
from headrace.publish.partitions import slices
from headrace.publish.served import create_served
from headrace.relations.visible_change import VisibleChange
from headrace.source.connection import Database
from headrace.types import Type

Sql = psycopg.Connection[Any]

DAYS = 100
FIRST = date(2024, 1, 1)
SETTINGS = {"ROWS": 10_000_000, "ROUNDS": 3}
COLUMNS = tuple(
    OutputColumn(name, type_, type_.sql)
    for name, type_ in (("day", Type("date")), ("k", Type("bigint")), ("v", Type("bigint")))
)
PLAIN = StreamTable("plain", "public", "plain", "", COLUMNS, (), key=("day", "k"))
PARTED = replace(PLAIN, relation="parted", name="parted", options={"partition_by": "day(day)"})
TABLES = {"unpartitioned": PLAIN, "partitioned": PARTED}
# What this session has looked at since it began a transaction, in all tables that are ours.
LOOKED = """
SELECT coalesce(sum(seq_tup_read), 0)::bigint, coalesce(sum(idx_tup_fetch), 0)::bigint
FROM pg_stat_xact_user_tables
WHERE relname = %(table)s OR relname ~ '^headrace_part_'
"""
PAGES = """
SELECT coalesce(sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit), 0)::bigint
FROM pg_statio_user_tables WHERE relname = %(table)s OR relname ~ '^headrace_part_'
"""


def say(text: str) -> None:
    sys.stderr.write(text + "\n")


@dataclass(frozen=True)
class Measured:
    """What one statement or publish took."""

    ms: float
    pages: int
    rows_scanned: int
    rows_by_index: int
    wal_bytes: int


def measure(sql: Sql, table: StreamTable, act: Callable[[], object]) -> Measured:
    """Perform the act in a transaction, and tell what it took."""
    named = {"table": table.name}
    sql.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
    pages = _one(sql, PAGES, named)
    before = _one(sql, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
    began = time.perf_counter()
    with sql.transaction():
        act()
        scanned, found = sql.execute(LOOKED, named).fetchone() or (0, 0)
    ms = 1000 * (time.perf_counter() - began)
    wal = _one(sql, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn") - before
    sql.execute("SELECT pg_stat_force_next_flush()")
    sql.execute("SELECT pg_stat_clear_snapshot()")
    return Measured(
        round(ms, 1), _one(sql, PAGES, named) - pages, int(scanned), int(found), int(wal)
    )


def _one(sql: Sql, query: str, parameters: Any = None) -> int:
    row = sql.execute(query, parameters).fetchone()
    assert row is not None
    return int(row[0])


def fill(sql: Sql, table: StreamTable, rows: int) -> None:
    """So many rows, day after day; the partitions are made by a change of a row a day."""
    create_served(sql, table)
    with sql.transaction():
        sql.execute("SET LOCAL headrace.publishing = 'on'")
        empty = changed((FIRST + timedelta(days=n), 0, 0, 0) for n in range(DAYS))
        slices(sql, table, load_change(sql, table, empty))
        sql.execute(
            f"INSERT INTO {table.name} SELECT %s + (i %% {DAYS})::integer, i, 0"
            " FROM generate_series(1, %s) i",
            (FIRST, rows),
        )
    sql.execute(f"VACUUM ANALYZE {table.name}")


def changed(rows: Iterable[tuple[date, int, int, int]]) -> VisibleChange:
    """Rows with their old and new values; one where both are the same is a row that comes."""
    found: list[tuple[int, date, int, int]] = []
    for day, key, old, new in rows:
        found.append((1, day, key, new))
        if old != new:
            found.append((-1, day, key, old))
    types = (pa.int64(), pa.date32(), pa.int64(), pa.int64())
    columns = zip(*found, strict=True)
    names = ["_weight", "c1", "c2", "c3"]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return VisibleChange.of(pa.table(arrays, names=names))


def updates(rows: int, share: float, days: int) -> VisibleChange:
    """An update of a share of all rows, in so many days in the middle."""
    number = max(1, round(rows * share) // days)
    first = (DAYS - days) // 2
    return changed(
        (FIRST + timedelta(days=day), day + DAYS * (i + 1), 0, 1)
        for day in range(first, first + days)
        for i in range(number)
    )


KINDS = {
    "0.1 % in 3 days": (0.001, 3),
    "0.1 % in all days": (0.001, DAYS),
    "1 % in 3 days": (0.01, 3),
}


def main(arguments: list[str]) -> None:
    settings = dict(SETTINGS)
    for name, _, value in (one.partition("=") for one in arguments):
        if name not in settings:
            raise SystemExit(f"{name} is none of {', '.join(settings)}")
        settings[name] = int(value)
    rows, rounds = settings["ROWS"], settings["ROUNDS"]
    result: dict[str, Any] = {"rows": rows, "partitions": DAYS}
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as folder,
        EmbeddedServer.open(Path(folder)) as server,
    ):
        database = Database(server.dsn)
        PostgresCatalog.open(database.connect).close()
        with psycopg.connect(server.dsn, autocommit=True) as sql:
            for word, table in TABLES.items():
                say(f"filling {word}")
                fill(sql, table, rows)
            for kind, (share, days) in KINDS.items():
                change = updates(rows, share, days)
                for word, table in TABLES.items():
                    say(f"{kind}, {word}")
                    found = [published(sql, table, change) for _ in range(rounds)]
                    result.setdefault(kind, {})[word] = best(found)
            for word, table in TABLES.items():
                found = [read_day(sql, table) for _ in range(rounds)]
                result.setdefault("one day read", {})[word] = best(found)
        database.close()
    sys.stdout.write(json.dumps(result) + "\n")


def published(sql: Sql, table: StreamTable, change: VisibleChange) -> Measured:
    """What a publish takes; the rows are brought back, so that every round finds the same."""
    found = measure(sql, table, lambda: apply_change(sql, table, change))
    rows = change.rows
    assert isinstance(rows, pa.Table)
    back = rows.set_column(0, "_weight", pc.negate(rows["_weight"]))
    with sql.transaction():
        apply_change(sql, table, VisibleChange.of(back))
    return found


def read_day(sql: Sql, table: StreamTable) -> Measured:
    """What it takes to read one day, without an index of the reader's own."""
    query = f"SELECT sum(v) FROM {table.name} WHERE day = %s"
    return measure(sql, table, lambda: sql.execute(query, [FIRST]).fetchall())


def best(found: list[Measured]) -> dict[str, Any]:
    """The round that took the least time."""
    return asdict(min(found, key=lambda one: one.ms))


if __name__ == "__main__":
    main(sys.argv[1:])
