"""The ways of capture that `bench.capture` compares, each with a server of its own.

A slot reads past everything its server logs, so ways that shared one would pay for each other.
Sources go into their mode through ingest, as in any project; only the computing of the stream
tables over them is left out, so that no Spark starts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

import headrace
from headrace.capture.layout import buffer_name
from headrace.catalog.records import CaptureMode, Source, Status
from headrace.engine import Engine
from headrace.ingest.attempts import CaptureAttempts
from headrace.ingest.ingest import ingest
from headrace.lifecycle.planned_table import TableRequest
from tests.lifecycle.made import put_tables

# Names of the ways, with the mode of their sources; `none` has no sources.
WAYS: dict[str, CaptureMode | None] = {
    "none": None,
    "trigger": CaptureMode.TRIGGER,
    "trigger_unlogged": CaptureMode.TRIGGER,
    "wal_key": CaptureMode.WAL,
    "wal_full": CaptureMode.WAL,
}
CUTS = 10
# What a server does at times of its own choice would hit one way and not the others.
QUIET = {"autovacuum": "off", "checkpoint_timeout": "1h", "max_wal_size": "4GB"}
WIDE = (
    *(f"i{n} int" for n in range(6)),
    *(f"m{n} numeric(12, 2)" for n in range(4)),
    *(f"t{n} text" for n in range(4)),
    *(f"d{n} timestamptz" for n in range(2)),
    *(f"b{n} boolean" for n in range(2)),
)
WIDE_VALUES = (
    *(f"i + {n}" for n in range(6)),
    *(f"i % 10007 + 0.{n}5" for n in range(4)),
    *(f"'text {n} of ' || i" for n in range(4)),
    *(f"TIMESTAMPTZ '2026-01-0{n + 1}' + i * INTERVAL '1 second'" for n in range(2)),
    *(f"i % {n + 2} = 0" for n in range(2)),
)
# Column definitions after the key and the column that updates change, and their values for `i`.
TABLES = {
    "orders": (
        ("customer int", "amount numeric(12, 2)", "placed timestamptz", "note text"),
        ("i % 10007", "i % 1000 + 0.25", WIDE_VALUES[14], "'a remark on ' || i"),
    ),
    "narrow": (("k int",), ("i % 1000",)),
    "wide": (WIDE, WIDE_VALUES),
}


def width(table: str) -> int:
    """How many columns a table has."""
    return 2 + len(TABLES[table][0])


@dataclass(frozen=True)
class World:
    """One way of capture: an open project, and the application's connection to its database."""

    way: str
    project: headrace.Headrace
    sql: psycopg.Connection[Any]

    @property
    def engine(self) -> Engine:
        return self.project._engine  # noqa: SLF001

    def source(self, table: str) -> Source | None:
        sources = self.engine.catalog.state().sources
        return next((source for source in sources if source.name == table), None)

    def one(self, query: str | sql.Composed) -> Any:
        """The only value that a query gives."""
        row = self.sql.execute(query).fetchone()
        assert row is not None
        return row[0]

    def ingest(self) -> None:
        """Take one cut, if there is anything new."""
        with self.engine.writing() as lease:
            ingest(self.engine, self.engine.catalog.state(), lease.fence)
        if self.project._spark.started:  # noqa: SLF001
            raise SystemExit(f"{self.way}: Spark was started, so this was no ordinary cut")

    def empty(self, table: str) -> int:
        """Empty a table, and forget what was captured of it; rows that its buffer had.

        Nothing may be taken in afterwards.
        """
        source, buffered = self.source(table), 0
        self.sql.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(table)))
        if source is not None and source.mode is CaptureMode.TRIGGER:
            buffer = buffer_name(source.oid)
            buffered = int(self.one(sql.SQL("SELECT count(*) FROM {}").format(buffer)))
            self.sql.execute(sql.SQL("TRUNCATE {}").format(buffer))
        return buffered

    def tidy(self) -> None:
        """Let go of the server's log; fails if a slot was lost. Nothing may be taken in later."""
        self.sql.execute(
            "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_flush_lsn())"
            " FROM pg_replication_slots"
        )
        self.sql.execute("CHECKPOINT")


@contextmanager
def open_world(way: str) -> Iterator[World]:
    """A fresh server with the empty tables, captured in this way."""
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as home,
        headrace.connect(home=Path(home)) as project,
        psycopg.connect(project.dsn, autocommit=True) as connection,
    ):
        world = World(way, project, connection)
        for setting, value in QUIET.items():
            connection.execute(f"ALTER SYSTEM SET {setting} = '{value}'")
        connection.execute("SELECT pg_reload_conf()")
        for table, (columns, values) in TABLES.items():
            _create(connection, table, columns, values)
            if way == "wal_full":
                connection.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
        mode = WAYS[way]
        if mode is not None:
            _capture(world, mode)
        yield world


def _create(
    connection: psycopg.Connection[Any],
    table: str,
    columns: tuple[str, ...],
    values: tuple[str, ...],
) -> None:
    """A table, and procedures that write rows into it: each statement is a transaction."""
    connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, n int, {', '.join(columns)})")
    rows = f"SELECT i, 0, {', '.join(values)} FROM generate_series(low, low + size - 1) i"
    statements = {
        "insert": f"INSERT INTO {table} {rows}",
        "update": f"UPDATE {table} SET n = n + 1 WHERE id BETWEEN low AND low + size - 1",
        "delete": f"DELETE FROM {table} WHERE id BETWEEN low AND low + size - 1",
    }
    for verb, statement in statements.items():
        connection.execute(
            f"CREATE PROCEDURE {verb}_{table}(low int, size int, times int)"
            f" LANGUAGE plpgsql AS $$ BEGIN FOR _ IN 1..times LOOP"
            f" {statement}; COMMIT; low := low + size; END LOOP; END $$"
        )


def _capture(world: World, mode: CaptureMode) -> None:
    """Take cuts until all tables are captured in the mode."""
    project = world.project
    project.set("cdc_mode", "trigger" if mode is CaptureMode.TRIGGER else "auto")
    project.set("unlogged_buffers", world.way == "trigger_unlogged")
    # Nothing is taken in between the writes that are measured; no limit may be met meanwhile.
    project.set("max_buffer_mb", 65_536)
    project.set("collect_rows", 10_000_000)
    put_tables(project, *(TableRequest(f"of_{name}", f"SELECT * FROM {name}") for name in TABLES))
    for _ in range(CUTS):
        world.ingest()
        sources = world.engine.catalog.state().sources
        triggers = world.one(
            "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'headrace_capture%'"
        )
        right = all(one.mode is mode and one.status is Status.ACTIVE for one in sources)
        if right and bool(triggers) == (mode is CaptureMode.TRIGGER):
            return
        world.engine.part(CaptureAttempts).followed_at.clear()
    raise SystemExit(
        f"{world.way}: the sources stayed {[(s.mode, s.mode_reason) for s in sources]}"
    )
