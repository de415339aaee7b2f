"""The change that readers of a relation see: in memory, or in parts that executors wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog.records import Relation
from headrace.engine import Engine
from headrace.plan.operators import Net
from headrace.relations.dataframe import shown_rows
from headrace.relations.input_reader import InputReader
from headrace.render import inputs_of, render
from headrace.store import WEIGHT, WrittenParts

BATCH_ROWS = 50_000


@dataclass(frozen=True)
class VisibleChange:
    """The netted change of a stream table's visible columns, given in batches of bounded size.

    Each batch has `_weight`, then the visible columns in order. `inserted` and `deleted` count
    rows by their weights. A small change is in memory, a large one in parts beside the log, which
    are removed by `discard`.
    """

    inserted: int
    deleted: int
    rows: pa.Table | WrittenParts

    @staticmethod
    def of(rows: pa.Table | WrittenParts) -> VisibleChange:
        """Return the change with its rows counted."""
        inserted = deleted = 0
        columns = rows.select([WEIGHT])
        for batch in columns.to_batches(max_chunksize=BATCH_ROWS):
            weights = batch.column(WEIGHT)
            inserted += pc.sum(pc.max_element_wise(weights, 0)).as_py() or 0
            deleted -= pc.sum(pc.min_element_wise(weights, 0)).as_py() or 0
        return VisibleChange(inserted, deleted, rows)

    @property
    def is_empty(self) -> bool:
        return not self.inserted and not self.deleted

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the weighted rows, from the first each time."""
        yield from self.rows.to_batches(max_chunksize=BATCH_ROWS)

    def discard(self) -> None:
        """Remove the parts, if there are any."""
        if isinstance(self.rows, WrittenParts):
            self.rows.discard()


def visible_change(engine: Engine, reading: InputReader, relation: Relation) -> VisibleChange:
    """Return the change of the visible columns, netted; a large change stays in files."""
    if not reading.is_large(relation.id):
        return VisibleChange.of(reading.change(relation))
    visible_plan = Net(shown_rows(relation, "change"))
    inputs = [reading.input(plan_input) for plan_input in inputs_of(visible_plan)]
    folder = engine.store.new_scratch(relation.id)
    engine.runner.write(render(visible_plan), inputs, folder)
    types = dict(relation.columns)
    columns = [(name, types[name].arrow) for name in relation.visible]
    return VisibleChange.of(engine.store.parts(folder, pa.schema([(WEIGHT, pa.int64()), *columns])))
