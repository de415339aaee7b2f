"""Cuts taken one after the other, and what the sources' relations hold at each of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pyarrow as pa

import headrace
from headrace.capture.cut import OpenCut
from headrace.catalog import State
from headrace.catalog.records import CaptureMode, Source, Status
from headrace.engine.steps import AppendChange, CopySource, Step
from headrace.errors import Transient
from headrace.ingest.ingest import ingest
from headrace.ingest.streaming import keep_streaming
from headrace.relations.compaction import compact
from headrace.store import WEIGHT

Bag = Counter[tuple[Any, ...]]
Modes = dict[str, CaptureMode]


def names_of(source: Source) -> list[tuple[str, str]]:
    """The captured columns, by their names in the log and in the table."""
    return [(one.physical, one.name) for one in source.columns if one.type is not None]


def bag_of(rows: pa.Table, source: Source) -> Bag:
    """Return the net of weighted rows, without rows of weight zero."""
    bag: Bag = Counter()
    values = rows.select([WEIGHT, *(physical for physical, _ in names_of(source))]).to_pydict()
    for weight, *row in zip(*values.values(), strict=True):
        bag[tuple(row)] += weight
    return Counter({row: weight for row, weight in bag.items() if weight})


@dataclass
class Taker:
    """Takes cuts of a project's sources and compares each with what PostgreSQL says of it.

    `taken` counts the rows that each source got in each way: by TRIGGER, by WAL or by a COPY. With
    `streams` the log is streamed as a daemon does it.
    """

    project: headrace.Headrace
    dsn: str
    bags: dict[str, Bag] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    changes: list[tuple[str, CaptureMode, CaptureMode]] = field(default_factory=list)
    cuts: int = 0
    streams: bool = False
    streamed: int = 0
    compared: int = 0
    busy: int = 0

    def __post_init__(self) -> None:
        self._steps: list[Step] = []
        self.engine.watch = lambda when, step: self._steps.append(step)

    @property
    def engine(self) -> Any:
        return self.project._engine

    @property
    def state(self) -> State:
        state: State = self.engine.catalog.state()
        return state

    @property
    def modes(self) -> Modes:
        return {source.name: source.mode for source in self.state.sources}

    def take(self, *, compare: bool = False) -> bool:
        """One ingest; False if writers kept a table too busy. `compare`: with the snapshot."""
        before = self.state
        everything = frozenset(source.relation for source in before.sources)
        seen: dict[str, Bag] = {}

        def look(cut: OpenCut, state: State) -> None:
            seen.update(self._in_snapshot(cut, state))

        self._steps.clear()
        try:
            with self.engine.writing() as lease:
                # Naming all of them has none of them left out of the cut.
                after = ingest(
                    self.engine,
                    before,
                    lease.fence,
                    retry=everything,
                    inside=look if compare else None,
                )
                if self.streams:
                    self._keep_streaming(after)
        except Transient as error:
            if error.code != "source-locked":
                raise
            self.busy += 1
            self._note_changes(before)
            return False
        self._note_changes(before)
        self._take_in(before)
        for name, bag in seen.items():
            assert self.bags[name] == bag, f"{name} is not what it was in the snapshot"
            self.compared += 1
        return True

    def compact(self) -> None:
        with self.engine.writing() as lease:
            compact(self.engine, [source.relation for source in self.state.sources], lease.fence)

    def whole(self, source: Source) -> Bag:
        """The relation's state at its pin, read from its beginning."""
        pin = self.state.relation(source.relation).pin
        return bag_of(self.engine.store.read(source.relation, pin, 0, pin.epoch), source)

    def _keep_streaming(self, state: State) -> None:
        """What a daemon does after a cut; counted are those after which there was a stream."""
        log = keep_streaming(self.engine, state, 1)
        self.streamed += log is not None and log.received() is not None

    def _note_changes(self, before: State) -> None:
        modes = {source.name: source.mode for source in before.sources}
        for source in self.state.sources:
            if source.mode is not modes[source.name]:
                self.changes.append((source.name, modes[source.name], source.mode))

    def _take_in(self, before: State) -> None:
        state = self.state
        modes = {source.relation: source.mode for source in before.sources}
        changed = {step.source for step in self._steps if isinstance(step, AppendChange)}
        copies = {step.source for step in self._steps if isinstance(step, CopySource)}
        if changed or copies:
            self.cuts += 1
            assert changed | copies == modes.keys(), "all sources are in every cut"
        for source in state.sources:
            assert source.status is Status.ACTIVE, source.reason
            relation = state.relation(source.relation)
            epoch = self.epochs.get(source.name, 0)
            rows = self.engine.store.read(relation.id, relation.pin, epoch, relation.pin.epoch)
            if relation.id in copies:
                way = "COPY"
            else:
                way = "WAL" if modes[relation.id] is CaptureMode.WAL else "TRIGGER"
            self.taken[source.name, way] += rows.num_rows
            self.epochs[source.name] = relation.pin.epoch
            bag = self.bags.setdefault(source.name, Counter())
            for row, weight in bag_of(rows, source).items():
                bag[row] += weight
                if not bag[row]:
                    del bag[row]

    def _in_snapshot(self, cut: OpenCut, state: State) -> dict[str, Bag]:
        with psycopg.connect(self.dsn) as session:
            session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            session.execute(f"SET TRANSACTION SNAPSHOT '{cut.export()}'")  # type: ignore[call-overload]
            return {source.name: read_table(session, source) for source in state.sources}


def read_table(session: psycopg.Connection[Any], source: Source) -> Bag:
    columns = ", ".join(name for _, name in names_of(source))
    rows = session.execute(f"SELECT {columns} FROM {source.name}")  # type: ignore[call-overload]
    return Counter(rows.fetchall())
