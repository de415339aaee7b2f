"""Sources in a mode of capture, an application that writes, and cuts that are compared with it.

No Spark: a project whose stream tables are recorded and never computed. What stands for the truth
is the table itself, as a bag of rows. With `HEADRACE_STREAMED` in the environment every log is
streamed after the first cut of it, as a daemon does.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

import headrace
from headrace.capture.recopy_reasons import captured_part
from headrace.catalog import State
from headrace.catalog.records import CaptureMode, Source, Status
from headrace.engine import Engine
from headrace.engine.steps import AppendChange, CopySource, Step
from headrace.ingest.attempts import CaptureAttempts
from headrace.ingest.ingest import ingest
from headrace.ingest.streaming import keep_streaming
from headrace.lifecycle.planned_table import TableRequest
from headrace.relations.rows import with_missing_columns
from headrace.source.connection import Database
from headrace.source.introspect import inspect
from headrace.source.reading import WEIGHT, read_sql, to_stored
from tests.capture.follower import Bag, bag_of, differences
from tests.lifecycle.made import put_tables

Application = psycopg.Connection[Any]

TRIGGER = "trigger"
FULL = "wal full"
KEY = "wal key"
MODES = (TRIGGER, FULL, KEY)
WAL = (FULL, KEY)
STREAMED = bool(os.environ.get("HEADRACE_STREAMED"))

LEAVES = """
SELECT t.relid::regclass::text FROM pg_partition_tree(%s::regclass) AS t WHERE t.isleaf
UNION SELECT c.oid::regclass::text FROM pg_class c WHERE c.oid = %s::regclass AND relkind = 'r'
"""


END_STREAMS = """
SELECT pg_terminate_backend(active_pid, 60000) FROM pg_replication_slots
WHERE database = current_database() AND active_pid IS NOT NULL
"""


def begin_stream(engine: Engine, state: State) -> None:
    """Have the log streamed, from the next cut on at the latest."""
    log = keep_streaming(engine, state, 1)
    if log is not None and log.stream is not None:
        log.stream.wait(1, 60)


@dataclass(frozen=True)
class Taken:
    """What a call of ingest did: names of the sources copied, and the rows of changes by name.

    `cut` is False where nothing was new.
    """

    cut: bool
    copied: frozenset[str] = frozenset()
    changed: dict[str, int] = field(default_factory=dict)


class World:
    """Some tables of one database, followed in one mode; `application` owns and writes them."""

    def __init__(
        self, project: headrace.Headrace, dsn: str, application: Application, mode: str
    ) -> None:
        self.project = project
        self.dsn = dsn
        self.application = application
        self.mode = mode
        self.steps: list[tuple[str, Step]] = []
        self.engine.watch = self.saw
        self.followed = 0
        self.streams = STREAMED

    @property
    def engine(self) -> Engine:
        return self.project._engine

    @property
    def by_log(self) -> bool:
        return self.mode != TRIGGER

    def saw(self, when: str, step: Step) -> None:
        self.steps.append((when, step))

    def run(self, *statements: str) -> None:
        """Statements of the application, each a transaction of its own."""
        for statement in statements:
            if self.streams and "_slot" in statement:
                # Nobody can take away or move a slot that a session has.
                self.application.execute(END_STREAMS)
            self.application.execute(statement)

    def together(self, *statements: str) -> None:
        """Statements of the application in one transaction."""
        with self.application.transaction():
            self.run(*statements)

    def follow(self, *tables: str) -> None:
        """Make tables sources, copied and captured in the mode of this world.

        In mode `wal key` each needs a primary key.
        """
        if self.mode == FULL:
            for table in tables:
                for (leaf,) in self.application.execute(LEAVES, (table, table)).fetchall():
                    self.run(f"ALTER TABLE {leaf} REPLICA IDENTITY FULL")
        requests = []
        for table in tables:
            self.followed += 1
            requests.append(TableRequest(f"reader_{self.followed}", f"SELECT * FROM {table}"))
        put_tables(self.project, *requests)
        assert len(self.cut().copied) == len(tables)
        if self.by_log:
            self.go()

    def go(self) -> None:
        """Bring sources from triggers to the log, at an ordinary cut."""
        self.project.set("cdc_mode", "auto")
        self.engine.part(CaptureAttempts).followed_at.clear()
        assert self.cut().copied == frozenset()
        for source in self.sources.values():
            assert (source.mode, source.mode_reason) == (CaptureMode.WAL, None)
            assert source.followed is not None
            assert source.followed.kind == ("key" if self.mode == KEY else "full")

    @property
    def sources(self) -> dict[str, Source]:
        """The sources, by the names of their tables."""
        return {source.name: source for source in self.engine.catalog.state().sources}

    @property
    def source(self) -> Source:
        """The only source."""
        (source,) = self.sources.values()
        return source

    @property
    def slot(self) -> str:
        """The name of the database's replication slot."""
        following = self.engine.catalog.state().database(1).following
        assert following is not None
        return following.slot

    def take(self, retry: Iterable[str] = ()) -> Taken:
        """One call of ingest."""
        engine = self.engine
        with engine.writing() as lease:
            state = engine.catalog.state()
            names = {source.relation: source.name for source in state.sources}
            again = frozenset(r for r, name in names.items() if name in retry)
            self.steps.clear()
            after = ingest(engine, state, lease.fence, retry=again)
            if self.streams:
                begin_stream(engine, after)
            done = [step for when, step in self.steps if when == "after"]
        changed = {}
        for step in done:
            if isinstance(step, AppendChange):
                relation = after.relation(step.source)
                rows = engine.store.read(
                    step.source, relation.pin, step.epoch - 1, relation.pin.epoch
                )
                changed[names[step.source]] = rows.num_rows
        return Taken(
            after.database(1).epoch != state.database(1).epoch,
            frozenset(names[step.source] for step in done if isinstance(step, CopySource)),
            changed,
        )

    def cut(self, retry: Iterable[str] = ()) -> Taken:
        """One call of ingest; afterwards every source that is not stopped equals its table."""
        taken = self.take(retry)
        for source in self.sources.values():
            if source.status is Status.ACTIVE:
                stored, live = self.stored(source), self.live(source)
                assert stored == live, f"{source.name}: {differences(stored, live)}"
        return taken

    def follows(self, *, copied: bool = False) -> Taken:
        """What `cut` does; there was something new, and all is captured as it was before."""
        before = {name: source.mode for name, source in self.sources.items()}
        taken = self.cut()
        assert taken.cut
        assert bool(taken.copied) is copied
        after = self.sources
        assert {name: after[name].mode for name in before} == before
        assert {source.status for source in after.values()} == {Status.ACTIVE}
        return taken

    def falls_back(self, reason: str) -> None:
        """Every source is copied and captured by triggers from the next cut on, for a reason.

        It goes to the log again when it is time, and follows changes in both modes.
        """
        taken = self.cut()
        assert taken.copied == frozenset(self.sources)
        for source in self.sources.values():
            assert (source.mode, source.followed) == (CaptureMode.TRIGGER, None)
            assert source.mode_reason is not None and reason in source.mode_reason

    def stored(self, source: Source) -> Bag:
        """The rows of the source's relation at its pin."""
        relation = self.engine.catalog.state().relation(source.relation)
        rows = self.engine.store.read(relation.id, relation.pin, 0, relation.pin.epoch)
        return Counter({row: weight for row, weight in bag_of(rows).items() if weight})

    def live(self, source: Source) -> Bag:
        """The rows of the table, in those columns that are captured."""
        relation = self.engine.catalog.state().relation(source.relation)
        with Database(self.dsn) as database:
            with database.session() as connection:
                table = inspect(connection, [source.oid])[source.oid]
            columns = captured_part(source, table).stored
            name = sql.Identifier(table.schema, table.name).as_string()
            rows = to_stored(database.arrow(read_sql(name, columns)), columns)
        if WEIGHT not in rows.column_names:
            rows = rows.add_column(0, WEIGHT, [[1] * rows.num_rows])
        return bag_of(with_missing_columns(rows, relation))

    def rows(self, table: str) -> int:
        """How many rows the source's relation has."""
        return self.stored(self.sources[table]).total()
