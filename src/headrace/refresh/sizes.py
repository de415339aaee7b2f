"""What lies before a refresh, counted in rows of logs: an update is two."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.catalog import State
from headrace.catalog.records import Effort, StreamTable
from headrace.engine import Engine
from headrace.graph.components import Group
from headrace.relations.input_reader import InputReader
from headrace.render import PlanInput

# The first queries of a process take two to three times as long as later ones.
JOBS_TO_WARM_UP = 20


def ahead_of(engine: Engine, state: State, group: Group, changed: frozenset[str]) -> Effort:
    """What a table, or the tables of a cycle as one, would take in, and over how many rows."""
    rows: dict[str, int] = {}
    for table in group:
        if table.epoch > 0:
            rows |= changed_rows(engine, state, table, changed.intersection(table.inputs))
    return Effort(
        rows,
        stored_rows(engine, state, read_by(group)),
        warm=engine.runner.jobs >= JOBS_TO_WARM_UP,
        first=any(table.epoch == 0 for table in group),
    )


def changed_rows(
    engine: Engine, state: State, table: StreamTable, inputs: Iterable[str]
) -> dict[str, int]:
    """For each of these inputs of a table the rows that it has not taken in."""
    reading = InputReader(engine.store, state, table.frontier, 0)
    return {name: reading.size(PlanInput(name, "change", ())) for name in sorted(inputs)}


def stored_rows(engine: Engine, state: State, inputs: Iterable[str]) -> int:
    """How many rows the logs of these relations have."""
    reading = InputReader(engine.store, state, {}, 0)
    return sum(reading.size(PlanInput(name, "after", ())) for name in inputs)


def read_by(group: Group) -> frozenset[str]:
    """What tables read other than each other."""
    own = {table.relation for table in group}
    return frozenset(name for table in group for name in table.inputs) - own
