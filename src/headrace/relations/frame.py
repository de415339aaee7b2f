"""A published stream table as a Spark DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.definition import define
from headrace.engine import Engine
from headrace.relations.reading import Reading
from headrace.render import inputs_of
from headrace.render.native import render_native

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def published_frame(engine: Engine, state: State, table: StreamTable) -> DataFrame:
    """The table at its published epoch; later refreshes do not change what the frame shows."""
    shown = define(table, state).final.shown()
    reading = Reading(engine.store, state, dict(table.frontier), table.epoch, limit=0)
    inputs = [reading.input(wanted) for wanted in inputs_of(shown)]
    names = tuple(column.name for column in table.columns)
    return engine.runner.frame(render_native(shown, names), inputs)
