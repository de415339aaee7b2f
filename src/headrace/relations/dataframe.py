"""A stream table as Spark DataFrames: its rows at an epoch, and how they changed after one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.algebra.scalar import Column
from headrace.catalog import State
from headrace.catalog.records import Relation, StreamTable
from headrace.engine import Engine
from headrace.errors import NeedsReinit
from headrace.plan.operators import Filter, Net, Operator, Project, Scan, Version
from headrace.relations.input_reader import SMALL_ROWS, InputReader
from headrace.render import inputs_of, render
from headrace.render.native import render_native

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def shown_rows(relation: Relation, version: Version = "after") -> Operator:
    """Return the plan of what readers see of a relation, or of its change."""
    types = dict(relation.columns)
    visible = tuple((name, Column(name, types[name])) for name in relation.visible)
    if relation.condition is None:
        return Scan(relation.id, visible, version)
    condition = Column(relation.condition, types[relation.condition])
    rows = Scan(relation.id, (*visible, (relation.condition, condition)), version)
    return Project(Filter(rows, condition), tuple((column, column) for _, column in visible))


def published_frame(
    engine: Engine, state: State, table: StreamTable, upto: int | None = None
) -> DataFrame:
    """Return a frame of the table at its published epoch, or as last published up to `upto`.

    Later refreshes do not change what the frame shows. Conditions on the column that the log is
    kept apart by reach its files. Raise `epoch-expired` where the log no longer has the table of
    that epoch.
    """
    plan = shown_rows(state.relation(table.relation))
    limits = {} if upto is None else {table.relation: _readable(engine, state, table, upto)}
    reading = InputReader(engine.store, state, {}, limit=0, upto=limits)
    inputs = [reading.input(plan_input) for plan_input in inputs_of(plan)]
    names = tuple(column.name for column in table.columns)
    apart = engine.store.arrangement(table.relation, state.relation(table.relation).pin).apart
    plain = frozenset() if apart is None else frozenset({apart})
    return engine.runner.frame(render_native(plan, names, plain), inputs)


def changed_frame(
    engine: Engine, state: State, table: StreamTable, after: int, upto: int | None = None
) -> DataFrame:
    """Return a frame of the table's netted change after the epoch `after`, with `_weight`.

    Epoch 0 is before the first row. Raise `epoch-expired` where the log no longer has what came
    after.
    """
    plan = Net(shown_rows(state.relation(table.relation), "change"))
    last = state.relation(table.relation).pin.epoch
    if upto is not None and after >= upto:
        first = last
    else:
        first = after and _readable(engine, state, table, after)
        last = last if upto is None else _readable(engine, state, table, upto)
    span = {table.relation: first}, SMALL_ROWS, {table.relation: last}
    reading = InputReader(engine.store, state, *span)
    inputs = [reading.input(plan_input) for plan_input in inputs_of(plan)]
    names = tuple(column.name for column in table.columns)
    return engine.runner.frame(render(plan, names), inputs)


def _readable(engine: Engine, state: State, table: StreamTable, epoch: int) -> int:
    """Return an epoch at which the log can be read and has the rows of the given one.

    From the latest change that readers see on, this is the pin's epoch, at which the log can be
    read after any compaction.
    """
    relation = state.relation(table.relation)
    if epoch >= relation.changed_at:
        return relation.pin.epoch
    _require_known(engine, state, table, epoch)
    return epoch


def _require_known(engine: Engine, state: State, table: StreamTable, epoch: int) -> None:
    """Require that the log still has the table at the epoch.

    The log begins where the table was built or rebuilt, and later epochs may be compacted.
    """
    pin = state.relation(table.relation).pin
    files = engine.store.files(table.relation, pin, 0, pin.epoch)
    for file in files:
        if file.first_epoch <= epoch < file.last_epoch:
            why = f"Epochs {file.first_epoch} to {file.last_epoch} were compacted."
            raise _expired(table, epoch, why)
    first = min((file.first_epoch for file in files), default=pin.epoch + 1)
    if first > epoch:
        # Where there are no rows, only the history knows whether the table was there.
        history = engine.catalog.refreshes(table.relation, None)
        first = min(
            (refresh.epoch for refresh in history if table.relation in refresh.versions),
            default=first,
        )
    if first > epoch:
        raise _expired(table, epoch, f"The stream table was built or rebuilt at epoch {first}.")


def _expired(table: StreamTable, epoch: int, why: str) -> NeedsReinit:
    return NeedsReinit(
        "epoch-expired",
        f"could not read {table.schema}.{table.name} at epoch {epoch}: the epoch has expired",
        detail=why,
        hint="Read the current epoch, or all rows as changes after 0.",
    )
