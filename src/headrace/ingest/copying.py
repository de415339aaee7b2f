"""Copying a source: its whole content at the cut becomes the relation's content at the epoch.

A first copy is appended as it is. A later one (the table was truncated or rewritten, or a change
could not be recorded) is appended as the difference, new minus old, so that readers see an
ordinary change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.algebra.scalar import Column
from headrace.capture.cut import OpenCut
from headrace.catalog.records import Relation
from headrace.engine import Engine
from headrace.errors import NeedsReinit
from headrace.ingest.small import difference_in_memory
from headrace.plan.operators import Negate, Net, Scan, UnionAll
from headrace.relations.rows import in_ranges, stored_schema, with_epoch
from headrace.render import render
from headrace.render.inputs import input_name
from headrace.settings import Settings
from headrace.source.table import SourceTable
from headrace.spark.copy import LiveRows, copy_table, write_difference
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
    """Append the table as it is in the cut; raise `value-does-not-fit` if it cannot be stored."""
    with _misfits_named(cut, table):
        live = live_rows(settings, cut, table, relation, epoch)
        small = difference_in_memory(engine, live, relation, settings.collect_rows)
        if small is not None:
            return engine.store.append(relation.id, relation.pin, epoch, small)
        folder = engine.store.new_folder(relation.id, epoch)
        arrangement = engine.store.arrangement(relation.id, relation.pin)
        old = old_rows(engine, relation)
        if old.files:
            sql = in_ranges(with_epoch(difference_sql(relation), epoch), arrangement)
            write_difference(engine.runner, live, old, sql, folder)
        else:
            activity = f"copying {table.schema}.{table.name}"
            copy_table(
                engine.runner,
                live.conninfo,
                live.snapshot,
                table,
                live.ranges,
                epoch,
                folder,
                lambda done, total: engine.progress(activity, done, total),
                arrangement.order,
            )
        return engine.store.register(relation.id, relation.pin, epoch, folder)


@contextmanager
def _misfits_named(cut: OpenCut, table: SourceTable) -> Iterator[None]:
    """Have `value-does-not-fit` name the row, which is searched for only after the read failed."""
    try:
        yield
    except NeedsReinit as error:
        if error.code != "value-does-not-fit":
            raise
        raise cut.find_misfit(table) or error from error


def live_rows(
    settings: Settings,
    cut: OpenCut,
    table: SourceTable,
    relation: Relation,
    epoch: int,
) -> LiveRows:
    """Return the table in the cut, to be read by executors while the cut is open."""
    return LiveRows(
        input_name(relation.id, "change"),
        stored_schema(relation),
        cut.database.conninfo,
        cut.export(),
        table,
        cut.ranges(table, settings.copy_parts),
        epoch,
    )


def old_rows(engine: Engine, relation: Relation) -> Input:
    """Return the relation's state at its pin."""
    files = engine.store.files(relation.id, relation.pin, 0, relation.pin.epoch)
    name = input_name(relation.id, "before")
    return Input(name, stored_schema(relation), files=tuple(file.uri for file in files))


def difference_sql(relation: Relation) -> str:
    """Return the query for live rows minus old rows, netted."""
    fields = tuple((name, Column(name, type_)) for name, type_ in relation.columns)
    live, old = (Scan(relation.id, fields, "change"), Scan(relation.id, fields, "before"))
    return render(Net(UnionAll((live, Negate(old)))))
