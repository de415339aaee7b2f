"""Sources against their live tables: both in the snapshot of one cut."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import partial

from headrace.capture.cut import OpenCut
from headrace.capture.recopy_reasons import captured_part
from headrace.catalog import State
from headrace.catalog.records import Source, Status, StreamTable
from headrace.engine import Engine
from headrace.errors import Transient, UserError
from headrace.graph import upstream
from headrace.ingest.copying import difference_sql, live_rows, old_rows
from headrace.ingest.ingest import databases_of, ingest_database, sources_in
from headrace.ingest.small import difference_in_memory
from headrace.source.introspect import inspect
from headrace.spark.copy import collect_difference
from headrace.verify.comparison import MOST_DIFFERENCES, SOURCE, Comparison, compared


def verify_sources(engine: Engine, table: StreamTable) -> list[Comparison]:
    """Take a cut, and compare every source below the table with its live table in that cut.

    Raise `unsupported-source` if one cannot be compared: without it nothing is proven.
    """
    comparisons: dict[str, Comparison] = {}

    def compare(number: int, cut: OpenCut, state: State) -> None:
        read = {
            relation
            for reader in upstream(state.stream_tables, table)
            for relation in reader.inputs
        }
        for source in sources_in(state, number):
            if source.relation in read and source.status is Status.ACTIVE:
                comparisons[source.relation] = _compare(engine, cut, state, source)

    with engine.writing() as lease:
        state = engine.catalog.state()
        if state.origin(table.relation) is None:
            name = f"{table.schema}.{table.name}"
            raise Transient("cut-interrupted", f"{name} was rebuilt or dropped during the verify")
        read = {
            relation
            for reader in upstream(state.stream_tables, table)
            for relation in reader.inputs
        }
        for number in databases_of(state, frozenset(read)):
            inside = partial(compare, number)
            state = ingest_database(engine, state, number, lease.fence, inside=inside)
        _require_all(state, read, comparisons)
    return list(comparisons.values())


def _require_all(state: State, read: Collection[str], done: Collection[str]) -> None:
    for relation in read:
        source = state.origin(relation)
        if relation in done or isinstance(source, StreamTable):
            continue
        name = "a source" if source is None else state.called(source)
        raise UserError(
            "unsupported-source",
            f"could not compare {name} with its live table",
            detail=None if source is None else source.reason,
            hint="Refresh the stream table first, or verify it without its sources.",
        )


def _compare(engine: Engine, cut: OpenCut, state: State, source: Source) -> Comparison:
    name = state.called(source)
    cut.lock(source.oid)
    require_unrewritten(cut, state, source)
    table = cut.tables[source.oid]
    relation = state.relation(source.relation)
    settings = engine.settings(state)
    live = live_rows(
        settings,
        cut,
        captured_part(source, table),
        relation,
        state.database(source.database).epoch,
    )
    difference = difference_in_memory(engine, live, relation, settings.collect_rows)
    if difference is None:
        difference = collect_difference(
            engine.runner,
            live,
            old_rows(engine, relation),
            difference_sql(relation),
            MOST_DIFFERENCES,
        )
    names = [column.name for column in source.columns if column.type is not None]
    types = [type_ for _, type_ in relation.columns]
    return compared(f"{SOURCE}{name}", difference, names, types, exact=True)


def require_unrewritten(cut: OpenCut, state: State, source: Source) -> None:
    """Raise `cut-interrupted` if the rows of the snapshot are gone from disk."""
    with cut.database.session() as connection:
        now = inspect(connection, [source.oid]).get(source.oid)
    before = cut.tables[source.oid].storage
    if now is None or json.loads(now.storage)["files"] != json.loads(before)["files"]:
        name = state.called(source)
        raise Transient("cut-interrupted", f"{name} was truncated or rewritten just now")
