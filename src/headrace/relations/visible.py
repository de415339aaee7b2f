"""The change that readers see of a relation: in memory, or netted and written by executors."""

from __future__ import annotations

import pyarrow as pa

from headrace.catalog.records import Relation
from headrace.engine import Engine
from headrace.plan.operators import Net
from headrace.relations.dataframe import shown_rows
from headrace.relations.input_reader import InputReader
from headrace.relations.visible_change import VisibleChange
from headrace.render import inputs_of, render
from headrace.store import WEIGHT


def visible_change(engine: Engine, reading: InputReader, relation: Relation) -> VisibleChange:
    """The change of the visible columns, netted; one that is large stays in files."""
    if not reading.is_large(relation.id):
        return VisibleChange.of(reading.change(relation))
    shown = Net(shown_rows(relation, "change"))
    inputs = [reading.input(wanted) for wanted in inputs_of(shown)]
    folder = engine.store.new_scratch(relation.id)
    engine.runner.write(render(shown), inputs, folder)
    types = dict(relation.columns)
    columns = [(name, types[name].arrow) for name in relation.visible]
    return VisibleChange.of(engine.store.parts(folder, pa.schema([(WEIGHT, pa.int64()), *columns])))
