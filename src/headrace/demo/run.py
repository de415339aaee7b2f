"""The steps of the demo: open the shop, create, keep fresh, recompute, verify."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from headrace.demo.outcome import Checked, Created, Event, Opened, Outcome, Pair, Round, Timed
from headrace.demo.shop import open_shop, require_demo_schema
from headrace.demo.trade import TradeTotals, Writer, trade_batch
from headrace.demo.views import DemoView, Rows, changes, read_rows, views

if TYPE_CHECKING:
    from headrace.api import Headrace

# A pause between two rounds makes them easier to read.
ROUND_SECONDS = 2.5
# With fewer rounds, a median would mostly show a cold start.
LEAST_ROUNDS = 3
# Incremental and full refreshes are timed in turn, on a warm Spark, for each batch of transactions.
BATCHES = 3
BATCH = 50


@dataclass(frozen=True)
class Demo:
    """One run over an open project: `report` takes events, `doing` shows the current activity."""

    project: Headrace
    lines: int
    seconds: float
    report: Callable[[Event], None]
    doing: Callable[[str], AbstractContextManager[None]]

    @property
    def views(self) -> tuple[DemoView, ...]:
        return views(self.lines)

    def run(self) -> Outcome:
        """Run the demo, from the empty shop to the last receipt; return all that was measured."""
        started = time.perf_counter()
        with self.doing("opening the shop"):
            require_demo_schema(self.project.dsn)
            self._drop_old()
            opened = self._open()
        self.report(opened)
        with closing(psycopg.connect(self.project.dsn, autocommit=True)) as reader:
            created = tuple(self._create(reader, view) for view in self.views)
            rounds = tuple(self._rounds(reader))
        with self.doing("refreshing with nothing new"):
            idle = tuple(self._refresh(view) for view in self.views)
        pairs = tuple(pair for number in range(1, BATCHES + 1) for pair in self._batch(number))
        checked = tuple(self._check(view) for view in self.views)
        took = time.perf_counter() - started
        return Outcome(opened, created, rounds, idle, pairs, checked, took)

    def _drop_old(self) -> None:
        """Drop the demo's stream tables of an earlier run in the same home folder."""
        existing_tables = {table.name for table in self.project.status()}
        for view in self.views:
            if view.table in existing_tables:
                self.project.drop_stream_table(view.table)

    def _open(self) -> Opened:
        started = time.perf_counter()
        shop = open_shop(self.project.dsn, self.lines)
        return Opened(shop, time.perf_counter() - started)

    def _create(self, reader: psycopg.Connection, view: DemoView) -> Created:
        started = time.perf_counter()
        with self.doing(f"creating {view.table}"):
            # Incremental and full refreshes are compared here, so the mode is not left to a choice.
            self.project.create_stream_table(view.table, view.query, refresh_mode="DIFFERENTIAL")
        took = time.perf_counter() - started
        created = Created(view, len(read_rows(reader, view)), took)
        self.report(created)
        return created

    def _rounds(self, reader: psycopg.Connection) -> Iterator[Round]:
        """Yield rounds while the shop writes, and one more after the writer has stopped."""
        served = {view: read_rows(reader, view) for view in self.views}
        with Writer(self.project.dsn) as writer:
            opened_at = time.perf_counter()
            before, number = TradeTotals(), 0
            while True:
                number += 1
                time.sleep(max(0.0, self._start_of(number) - (time.perf_counter() - opened_at)))
                last = time.perf_counter() - opened_at >= self.seconds and number > LEAST_ROUNDS
                if last:
                    writer.stop()
                writer.check()
                at, written = time.perf_counter() - opened_at, writer.written
                with self.doing(f"round {number}"):
                    timed = tuple(self._watch(reader, view, served) for view in self.views)
                done = Round(number, at, written - before, timed)
                self.report(done)
                yield done
                before = written
                if last:
                    return

    def _start_of(self, number: int) -> float:
        """Return the earliest second at which a round starts: the shop needs time to write."""
        return number * min(ROUND_SECONDS, self.seconds / LEAST_ROUNDS)

    def _watch(
        self, reader: psycopg.Connection, view: DemoView, served: dict[DemoView, Rows]
    ) -> Timed:
        """Refresh a table, and read it afterwards outside of the measured time."""
        timed = self._refresh(view)
        before, served[view] = served[view], read_rows(reader, view)
        return Timed(view, timed.refresh, timed.seconds, changes(before, served[view]))

    def _batch(self, number: int) -> Iterator[Pair]:
        """Write a batch; refresh incrementally and then in full, table by table."""
        with self.doing(f"batch {number} of {BATCHES}: refreshing, and computing in full"):
            trade_batch(self.project.dsn, number, BATCH)
            for view in self.views:
                yield Pair(self._refresh(view), self._refresh(view, "FULL"))

    def _refresh(self, view: DemoView, mode: str | None = None) -> Timed:
        started = time.perf_counter()
        refresh = self.project.refresh(view.table, mode)
        return Timed(view, refresh, time.perf_counter() - started)

    def _check(self, view: DemoView) -> Checked:
        """Verify a table; with the last one, which reads every source, verify the sources, too."""
        with self.doing(f"verifying {view.table}"):
            started = time.perf_counter()
            receipt = self.project.verify(view.table, source=view == self.views[-1])
            return Checked(view, receipt, time.perf_counter() - started)
