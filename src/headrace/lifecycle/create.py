"""Creating stream tables, one or many: all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.catalog import State
from headrace.catalog.records import RefreshMode, Status, StreamTable, is_stale
from headrace.engine import Engine
from headrace.graph.components import cycles
from headrace.lifecycle.alter import change
from headrace.lifecycle.build import build
from headrace.lifecycle.capture_requirements import check_modes, reset_shrunk_sources
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.partitioning import needs_rebuild, partitions_differ, same_partitions
from headrace.lifecycle.planned_table import FIRST, PlannedTable, TableRequest
from headrace.lifecycle.planning import plan
from headrace.lifecycle.repair import damaged_sources
from headrace.lifecycle.table_spec import ALTERED, REPARTITIONED, TableSpec
from headrace.publish.partition_scheme import OPTION


def check_query(engine: Engine, state: State, request: TableRequest) -> PlannedTable:
    """Check all that can be checked of a query before anything is written, or raise UserError."""
    planned_tables = plan(engine, state, [TableSpec(FIRST, request)]).planned_tables
    return next(planned for planned in planned_tables if planned.old is None)


def filled_with(engine: Engine, state: State, table: StreamTable) -> tuple[PlannedTable, ...]:
    """Plan what would fill a table that was never filled: first itself, then all others."""
    planned_tables = plan(engine, state, [TableSpec(FIRST, old=table)]).planned_tables
    return tuple(sorted(planned_tables, key=lambda planned: planned.old != table))


def create(engine: Engine, *requests: TableRequest) -> tuple[StreamTable, ...]:
    """Create the stream tables and fill them; a failure leaves none of them behind.

    They may read each other, in any order. Those that shall not be filled are only served, empty.
    """
    # Errors in the requests are raised even while another writer holds the lease.
    plan(engine, engine.catalog.state(), [TableSpec(FIRST, request) for request in requests])
    return make(engine, requests)


def make(
    engine: Engine,
    requests: Sequence[TableRequest],
    replacing: frozenset[tuple[str, str]] = frozenset(),
) -> tuple[StreamTable, ...]:
    """Create stream tables together; those named in `replacing` replace existing ones.

    A table with the same query is not recomputed, only its options are changed, unless other
    partitions are requested.
    """
    with engine.writing() as lease:
        state = engine.catalog.state()
        cycle_of = cycles(state.stream_tables)
        specs = []
        altered = []
        for request in requests:
            name = _name(engine, request)
            old = state.stream_table(*name) if name in replacing else None
            if old is None:
                specs.append(TableSpec(FIRST, request))
            elif old.query != request.query or old.status is not Status.ACTIVE or is_stale(old):
                specs.append(TableSpec(ALTERED, request, old))
            elif needs_rebuild(old.options, request.options):
                parted = partitions_differ(old.options, request.options)
                specs.append(TableSpec(REPARTITIONED if parted else ALTERED, request, old))
            elif request.refresh_mode is RefreshMode.FULL and old.relation in cycle_of:
                # The plan of all requests together decides whether the table may be FULL.
                specs.append(TableSpec(ALTERED, request, old))
            else:
                altered.append(_with_options(old, request))
        if specs:
            empty = all(spec.is_empty for spec in specs)
            damaged = frozenset[str]() if empty else damaged_sources(engine, state)
            work = plan(engine, state, specs, damaged, altered)
            build(engine, work, lease.fence)
        else:
            check_modes(engine, state, state.with_origins(altered))
        made = tuple(_give_options(engine, request, lease.fence) for request in requests)
        reset_shrunk_sources(engine, state, lease.fence)
        return made


def create_or_replace(engine: Engine, request: TableRequest) -> StreamTable:
    """Create the stream table, or give the existing one of that name the query and options."""
    return make(engine, [request], frozenset({_name(engine, request)}))[0]


def _give_options(engine: Engine, request: TableRequest, fence: int) -> StreamTable:
    table = engine.catalog.state().stream_table(*_name(engine, request))
    assert table is not None
    new = _with_options(table, request)
    change(engine, table, new, fence)
    return new


def _with_options(table: StreamTable, request: TableRequest) -> StreamTable:
    """Return the table as requested; a scheme taken over from a source stays as recorded."""
    options = request.options
    scheme = table.options.get(OPTION)
    if scheme is not None and same_partitions(scheme, options.get(OPTION)):
        options = {**options, OPTION: scheme}
    return replace(
        table,
        schedule=request.schedule,
        refresh_mode=request.refresh_mode,
        options=options,
    )


def _name(engine: Engine, request: TableRequest) -> tuple[str, str]:
    return parse_name(request.name, engine.database.search_path[0])
