"""Changes in columns that a table does not read are no changes for it.

The log of a source has all columns that are captured, whoever reads them: an update of others comes
in as rows that differ nowhere a table looks.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.scalar import Column
from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.engine import Engine
from headrace.graph.components import Group
from headrace.plan.operators import Net, Scan
from headrace.relations.definition import define, used_columns
from headrace.relations.input_reader import InputReader
from headrace.render import PlanInput, inputs_of, render
from headrace.store import WEIGHT


def changed_where_read(
    engine: Engine, state: State, group: Group, changed: frozenset[str]
) -> frozenset[str]:
    """Those of the changed inputs that changed in columns which the tables read.

    A change that leaves the number of rows as it was has to be netted to know. One that is too
    large for memory is netted by Spark, unless all columns are read. Without `enable_stratum_skip`
    a stream table that was refreshed counts as changed.
    """
    skipping = engine.settings(state).enable_stratum_skip
    return frozenset(
        name
        for name in changed
        if (not skipping and isinstance(state.origin(name), StreamTable))
        or _changed(engine, state, group, name)
    )


def rows_where_read(engine: Engine, state: State, table: StreamTable, inputs: Iterable[str]) -> int:
    """How many rows these inputs gain and lose in the columns that the table reads.

    Never more than are stored of the changes, where rows that are alike in one cut are one.
    """
    reading = _reading(engine, state, (table,))
    return sum(
        min(
            reading.size(PlanInput(name, "change", ())),
            _net_rows(engine, reading, name, _read(state, (table,), name)),
        )
        for name in inputs
    )


def _changed(engine: Engine, state: State, group: Group, name: str) -> bool:
    reading = _reading(engine, state, group)
    counted = PlanInput(name, "change", ())
    total = reading.input(counted)
    if total.rows is None:
        if reading.only_adds(counted, total):
            return True
    elif total.rows.num_rows:
        # Their weights do not add up to zero.
        return True
    columns = _read(state, group, name)
    if total.rows is None and len(columns) == len(state.relation(name).columns):
        return True
    return _net_rows(engine, reading, name, columns) > 0


def _reading(engine: Engine, state: State, group: Group) -> InputReader:
    frontier = {name: epoch for table in group for name, epoch in table.frontier.items()}
    return InputReader(engine.store, state, frontier, engine.settings(state).collect_rows)


def _read(state: State, group: Group, name: str) -> tuple[str, ...]:
    """The columns of an input that some table of the group reads, in the input's order."""
    used = {c for table in group for c in used_columns(define(table, state).plan, name)}
    return tuple(column for column, _ in state.relation(name).columns if column in used)


def _net_rows(engine: Engine, reading: InputReader, name: str, columns: tuple[str, ...]) -> int:
    """The rows that come and go in these columns of a change, by their weights."""
    types = dict(reading.state.relation(name).columns)
    plan = Net(Scan(name, tuple((c, Column(c, types[c])) for c in columns), "change"))
    (wanted,) = inputs_of(plan)
    given = reading.input(wanted)
    if given.rows is not None:
        return pc.sum(pc.abs(given.rows.column(WEIGHT))).as_py() or 0
    text = f"SELECT coalesce(sum(abs(`{WEIGHT}`)), 0) AS `rows` FROM (\n{render(plan)}\n)"
    counted = engine.runner.collect(text, [given], profile="wide")
    assert isinstance(counted, pa.Table)
    rows: int = counted.column("rows")[0].as_py()
    return rows
