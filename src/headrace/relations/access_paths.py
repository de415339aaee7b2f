"""Access paths to the rows of an input with certain keys, and the one that is likely fastest.

| access path | how | costs |
|---|---|---|
| probe | PostgreSQL's index on a source, as it was at the last cut | with the keys |
| index | the places of rows by a column of the key, beside the files | with the keys |
| pruned | as a scan, of row groups that may hold a key by their statistics | with their rows |
| scan | the key's column in all files, the other columns where it is found | with the rows |
| whole | Spark reads the input | with the rows, some ten times as much |
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from headrace.capture.probe import LastCut, probe
from headrace.catalog.records import Access, CaptureMode, Source, Status
from headrace.engine import Engine
from headrace.relations.input_reader import InputReader
from headrace.render import PlanInput
from headrace.store import WEIGHT, Keys

AccessPath = Literal["probe", "index", "pruned", "scan"]
RequestedPath = Literal["auto", "probe", "index", "pruned", "scan", "whole"]

# Measured on one machine, in milliseconds; only their order of magnitude matters.
PROBE_BEGINS = 10.0
PROBE_A_KEY = 0.02
LOOK_UP_BEGINS = 2.0
LOOK_UP_A_VALUE = 0.000_02
# The pause between an inconclusive probe of a column and the next probe of the column.
PAUSE_SECONDS = 60.0


@dataclass
class FailedProbes:
    """Times, by the process's clock, until which failed probes of columns are not repeated."""

    until: dict[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True)
class AccessPaths:
    """Look up the rows of a stage's inputs by their keys.

    `read` are the inputs that the stage came to read, `taken` those of them found by keys.
    """

    engine: Engine
    reading: InputReader
    requested: RequestedPath
    read: list[PlanInput] = field(default_factory=list)
    taken: list[Access] = field(default_factory=list)

    def start(self, inputs: Iterable[PlanInput]) -> None:
        """Set the inputs that the stage reads, and forget those of an earlier attempt."""
        self.read[:] = inputs
        self.taken.clear()

    @property
    def rows_read(self) -> int:
        """The stored rows of all inputs, of those found by keys only what was kept."""
        spared = sum(access.rows - access.kept for access in self.taken)
        return sum(map(self.reading.size, self.read)) - spared

    def find(self, plan_input: PlanInput, keys: Keys) -> tuple[pa.Table, AccessPath]:
        """Return the weighted rows of the input with one of the keys, not netted.

        A result of more rows than the reading's `most_found` is incomplete.
        """
        reading = self.reading
        if self.requested in ("index", "pruned", "scan"):
            return reading.lookup(plan_input, keys, by=self.requested), self.requested
        reached, indexed = reading.lookup_cost(plan_input, keys)
        rows = (
            self._probed(plan_input, keys) if self._may_probe(plan_input, keys, reached) else None
        )
        if rows is not None:
            return rows, "probe"
        pruned: AccessPath = "pruned" if reached < reading.size(plan_input) else "scan"
        return reading.lookup(plan_input, keys), "index" if indexed else pruned

    def _may_probe(self, plan_input: PlanInput, keys: Keys, reached: int) -> bool:
        """Return whether a probe is requested, or likely faster than comparing `reached` rows."""
        if self.requested == "probe":
            return True
        if self.requested != "auto" or not len(keys):
            return False
        look_up = LOOK_UP_BEGINS + LOOK_UP_A_VALUE * reached * (1 + len(plan_input.columns))
        return PROBE_BEGINS + PROBE_A_KEY * len(keys) < look_up

    def _probed(self, plan_input: PlanInput, keys: Keys) -> pa.Table | None:
        """Return the rows that the source's index finds, as of the epoch that is read.

        None without a conclusive probe. Changes after the epoch that is read are taken back.
        """
        state, reading = self.reading.state, self.reading
        source = next((s for s in state.sources if s.relation == plan_input.relation), None)
        if source is None or not _is_buffered(source):
            return None
        database_record = state.database(source.database)
        at = (source.relation, ", ".join(keys.names))
        waiting = time.monotonic() < self.engine.part(FailedProbes).until.get(at, 0.0)
        if not keys.integers or database_record.snapshot is None or waiting:
            return None
        cut = LastCut(
            database_record.snapshot,
            database_record.epoch,
            database_record.system_identifier,
            database_record.timeline,
        )
        values = {name: integers.tolist() for name, integers in keys.integers.items()}
        database = self.engine.source_database(database_record)
        most = reading.most_found(plan_input)
        probed = probe(database, source, cut, values, plan_input.columns, most)
        if probed is None:
            self.engine.part(FailedProbes).until[at] = time.monotonic() + PAUSE_SECONDS
            return None
        if probed.num_rows > most:
            return probed.select([WEIGHT, *plan_input.columns])
        pin = state.relation(plan_input.relation).pin
        _, upto = reading.span(plan_input.relation, plan_input.version)
        later = reading.store.read(plan_input.relation, pin, upto, pin.epoch)
        names = [WEIGHT, *plan_input.columns]
        tables = [keys.matching(probed).select(names)]
        if later.num_rows:
            back = keys.matching(later).select(names)
            tables.append(back.set_column(0, WEIGHT, pc.negate(back[WEIGHT])))
        schema = pa.schema(
            [(WEIGHT, pa.int64()), *(later.schema.field(n) for n in plan_input.columns)]
        )
        return pa.concat_tables([table.cast(schema) for table in tables])


def _is_buffered(source: Source) -> bool:
    """Return whether every change since the last cut is in a buffer."""
    return source.mode is CaptureMode.TRIGGER and source.status is Status.ACTIVE
