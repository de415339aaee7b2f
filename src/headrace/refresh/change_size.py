"""Measure what a refresh would take in, ignore columns that are not read, and limit its size.

Sizes are counted in rows of logs: an update is two. The log of a source has all captured columns,
so an update of other columns arrives as rows that differ in no column that a table reads.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.scalar import Column
from headrace.catalog import State
from headrace.catalog.records import Effort, Status, StreamTable
from headrace.engine import Engine
from headrace.errors import HeadraceError, UserError
from headrace.graph.components import Group
from headrace.plan.operators import Net, Scan
from headrace.relations.definition import define, used_columns
from headrace.relations.input_reader import InputReader
from headrace.render import PlanInput, inputs_of, render
from headrace.store import WEIGHT

# The first queries of a process take two to three times as long as later ones.
JOBS_TO_WARM_UP = 20


def expected_effort(engine: Engine, state: State, group: Group, changed: frozenset[str]) -> Effort:
    """Return the effort ahead of a refresh: the rows to take in, and the rows that are stored."""
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
    """Return, for each of these inputs, the number of rows that the table has not taken in."""
    reading = InputReader(engine.store, state, table.frontier, 0)
    return {name: reading.size(PlanInput(name, "change", ())) for name in sorted(inputs)}


def stored_rows(engine: Engine, state: State, inputs: Iterable[str]) -> int:
    """Return how many rows the logs of these relations have."""
    reading = InputReader(engine.store, state, {}, 0)
    return sum(reading.size(PlanInput(name, "after", ())) for name in inputs)


def read_by(group: Group) -> frozenset[str]:
    """Return what tables read other than each other."""
    own = {table.relation for table in group}
    return frozenset(name for table in group for name in table.inputs) - own


def changed_where_read(
    engine: Engine, state: State, group: Group, changed: frozenset[str]
) -> frozenset[str]:
    """Return those of the changed inputs that changed in columns which the tables read.

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
    """Return how many rows these inputs gain and lose in the columns that the table reads.

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
        # The change is netted: the weights of its rows do not add up to zero.
        return True
    columns = _read(state, group, name)
    if total.rows is None and len(columns) == len(state.relation(name).columns):
        return True
    return _net_rows(engine, reading, name, columns) > 0


def _reading(engine: Engine, state: State, group: Group) -> InputReader:
    frontier = {name: epoch for table in group for name, epoch in table.frontier.items()}
    return InputReader(engine.store, state, frontier, engine.settings(state).collect_rows)


def _read(state: State, group: Group, name: str) -> tuple[str, ...]:
    """Return the columns of an input that some table of the group reads, in the input's order."""
    used = {c for table in group for c in used_columns(define(table, state).plan, name)}
    return tuple(column for column, _ in state.relation(name).columns if column in used)


def _net_rows(engine: Engine, reading: InputReader, name: str, columns: tuple[str, ...]) -> int:
    """Return the rows that come and go in these columns of a change, by their weights."""
    types = dict(reading.state.relation(name).columns)
    plan = Net(Scan(name, tuple((c, Column(c, types[c])) for c in columns), "change"))
    (plan_input,) = inputs_of(plan)
    input_ = reading.input(plan_input)
    if input_.rows is not None:
        return pc.sum(pc.abs(input_.rows.column(WEIGHT))).as_py() or 0
    text = f"SELECT coalesce(sum(abs(`{WEIGHT}`)), 0) AS `rows` FROM (\n{render(plan)}\n)"
    counted = engine.runner.collect(text, [input_], profile="wide")
    assert isinstance(counted, pa.Table)
    rows: int = counted.column("rows")[0].as_py()
    return rows


TOO_LARGE = "change-too-large"


def check_change_limit(
    engine: Engine,
    group: Group,
    changed: frozenset[str],
    state: State,
    allowed: frozenset[str] = frozenset(),
) -> None:
    """Raise `change-too-large` if a table would take in more rows than its `max_change_rows`.

    Tables that are `allowed` take in a change of any size. Rows are counted as they are stored: an
    update is two, and rows that are alike in one cut are one. Neither the rows that a table was
    filled from count nor changes in columns that the table does not read.
    """
    settings = engine.settings(state)
    for table in group:
        most = table.options.get("max_change_rows", settings.max_change_rows)
        if most is None or table.epoch == 0 or table.relation in allowed:
            continue
        inputs = changed.intersection(table.inputs)
        rows = sum(changed_rows(engine, state, table, inputs).values())
        if rows > most:
            rows = rows_where_read(engine, state, table, inputs)
        if rows > most:
            raise UserError(
                TOO_LARGE,
                f"{rows} changed rows for {table.schema}.{table.name} exceed"
                f" max_change_rows, {most}",
                hint="If the change is intended, resume the stream table with apply, which takes it"
                " in, or with rebuild, which recomputes the table from scratch.",
            )


def was_stopped_by_limit(engine: Engine, table: StreamTable) -> bool:
    """Return whether max_change_rows is why the table is suspended, by its latest failure."""
    latest = engine.catalog.refreshes(table.relation, 1)
    return (
        table.status is Status.SUSPENDED
        and bool(latest)
        and latest[0].error == f"{TOO_LARGE}: {table.reason}"
    )


def exceeds_change_limit(error: HeadraceError) -> bool:
    """Return whether the failure suspends the table at once."""
    return error.code == TOO_LARGE
