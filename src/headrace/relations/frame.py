"""A published stream table as a Spark DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.catalog import State
from headrace.catalog.records import Relation, StreamTable
from headrace.engine import Engine
from headrace.plan.operators import Filter, Operator, Project, Scan, Version
from headrace.plan.scalar import Column
from headrace.relations.reading import Reading
from headrace.render import inputs_of
from headrace.render.native import render_native

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def shown_rows(relation: Relation, version: Version = "after") -> Operator:
    """What readers see of a relation, or of its change, from its record alone."""
    types = dict(relation.columns)
    visible = tuple((name, Column(name, types[name])) for name in relation.visible)
    if relation.condition is None:
        return Scan(relation.id, visible, version)
    condition = Column(relation.condition, types[relation.condition])
    rows = Scan(relation.id, (*visible, (relation.condition, condition)), version)
    return Project(Filter(rows, condition), tuple((column, column) for _, column in visible))


def published_frame(engine: Engine, state: State, table: StreamTable) -> DataFrame:
    """The table at its published epoch; later refreshes do not change what the frame shows."""
    shown = shown_rows(state.relation(table.relation))
    reading = Reading(engine.store, state, dict(table.frontier), table.epoch, limit=0)
    inputs = [reading.input(wanted) for wanted in inputs_of(shown)]
    names = tuple(column.name for column in table.columns)
    return engine.runner.frame(render_native(shown, names), inputs)
