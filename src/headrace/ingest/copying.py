"""Copying a source: its whole content at the cut becomes the relation's content at the epoch.

A first copy is appended as it is. A later one (the table was truncated or rewritten, or a change
could not be recorded) is appended as the difference, new minus old, so that readers see an
ordinary change.
"""

from __future__ import annotations

from headrace.capture.cut import OpenCut
from headrace.catalog.records import Relation
from headrace.engine import Engine
from headrace.plan.operators import Negate, Net, Operator, Scan, UnionAll
from headrace.plan.scalar import Column
from headrace.relations.rows import stored_schema, with_epoch
from headrace.render import render
from headrace.render.inputs import input_name
from headrace.settings import Settings
from headrace.source.table import SourceTable
from headrace.spark.copy import copy_table
from headrace.spark.recopy import write_recopy
from headrace.spark.run import Input
from headrace.store import Pin


def copy_source(
    engine: Engine,
    settings: Settings,
    cut: OpenCut,
    table: SourceTable,
    relation: Relation,
    epoch: int,
) -> Pin:
    """Append the table as it is in the cut; raises NeedsReinit where a value does not fit."""
    misfit = cut.find_misfit(table)
    if misfit is not None:
        raise misfit
    ranges = cut.ranges(table, settings.copy_parts)
    folder = engine.store.new_folder(relation.id, epoch)
    conninfo, snapshot = engine.database.conninfo, cut.export()
    old = engine.store.files(relation.id, relation.pin, 0, relation.pin.epoch)
    if old:
        schema = stored_schema(relation)
        copied = Input(input_name(relation.id, "change"), schema)
        before = Input(
            input_name(relation.id, "before"), schema, files=tuple(file.uri for file in old)
        )
        sql = with_epoch(_difference(relation), epoch)
        write_recopy(
            engine.runner, conninfo, snapshot, table, ranges, copied, before, sql, epoch, folder
        )
    else:
        what = f"copying {table.schema}.{table.name}"
        copy_table(
            engine.runner,
            conninfo,
            snapshot,
            table,
            ranges,
            epoch,
            folder,
            lambda done, total: engine.progress(what, done, total),
        )
    return engine.store.register(relation.id, relation.pin, epoch, folder)


def _difference(relation: Relation) -> str:
    """New rows minus old rows, netted."""
    fields = tuple((name, Column(name, type_)) for name, type_ in relation.columns)
    new: Operator = Scan(relation.id, fields, "change")
    old: Operator = Scan(relation.id, fields, "before")
    return render(Net(UnionAll((new, Negate(old)))))
