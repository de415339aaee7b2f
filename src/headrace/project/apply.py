"""Plan and apply a project folder, with PostgreSQL's answers about its queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.catalog import State
from headrace.catalog.records import RefreshMode, StreamTable
from headrace.engine import Engine
from headrace.errors import HeadraceError
from headrace.graph import downstream
from headrace.graph.dependencies import in_order
from headrace.ingest.requested_modes import REQUESTS
from headrace.lifecycle.alter import Alteration, alter
from headrace.lifecycle.capture_requirements import option_notices
from headrace.lifecycle.create import make
from headrace.lifecycle.cycle_members import Name
from headrace.lifecycle.drop import drop
from headrace.lifecycle.planned_table import FIRST, PlannedTable
from headrace.lifecycle.planning import plan
from headrace.lifecycle.table_spec import ALTERED, TableSpec, read_tables
from headrace.project.difference import Reads, difference, differs
from headrace.project.plan import Act, ProjectPlan, TableChange, inputs_of, refuse_stale
from headrace.project.read import DefinedTable
from headrace.statements.options import refresh_mode

# The acts that give a table options.
GIVEN = (Act.CREATE, Act.REBUILD, Act.ALTER)


def plan_project(
    engine: Engine, folder: str, wanted: Sequence[DefinedTable], *, prune: bool
) -> ProjectPlan:
    """Return the plan of a folder, or raise an error in its queries; write nothing."""
    state = engine.catalog.state()
    reads = _reads(engine, state, wanted)
    plan = difference(folder, wanted, state, reads, prune=prune)
    definitions = [
        definition
        for definition in wanted
        if definition.name in _names(plan.of(Act.CREATE, Act.REBUILD))
    ]
    before = _before_making(state, plan)
    planned_tables = check_queries(engine, before, definitions, reads)
    return replace(plan, notices=_expected_notices(before, plan, wanted, planned_tables))


def apply_project(
    engine: Engine,
    folder: str,
    definitions: Sequence[DefinedTable],
    *,
    prune: bool,
    expected: ProjectPlan | None = None,
) -> ProjectPlan:
    """Apply the plan of a folder; raise `stale-plan` if it is not the expected one.

    Errors in the queries are raised before anything is done, even while another writer holds the
    lease. Tables that nothing keeps are dropped first, so that none of them holds up what is made;
    then all that is made is made together; what was read until then is dropped last. If one of
    these steps fails, those before it stay, and applying again goes on from there.
    """
    plan = plan_project(engine, folder, definitions, prune=prune)
    if expected is not None:
        refuse_stale(expected, plan)
    if plan.nothing_to_do:
        return plan
    with engine.writing():
        state = engine.catalog.state()
        reads = _reads(engine, state, definitions)
        refuse_stale(plan, difference(folder, definitions, state, reads, prune=prune))
        _perform(engine, state, {definition.name: definition for definition in definitions}, plan)
        after = engine.catalog.state()
    tables = [after.stream_table(*change.name) for change in plan.of(*GIVEN)]
    notices = [notice for table in tables if table for notice in option_notices(after, table)]
    return replace(plan, notices=tuple(notices))


def _expected_notices(
    state: State,
    plan: ProjectPlan,
    definitions: Sequence[DefinedTable],
    planned_tables: Sequence[PlannedTable],
) -> tuple[str, ...]:
    """Return the notices that applying a plan will give, as far as they can be known before."""
    request_of = {definition.name: definition.request for definition in definitions}
    tables = {}
    for change in plan.of(Act.ALTER):
        request = request_of[change.name]
        tables[change.name] = replace(
            _table(state, change.name), schedule=request.schedule, options=request.options
        )
    for planned in planned_tables:
        name = (planned.table.schema, planned.table.name)
        # The sources of a table that is created empty are not recorded.
        tables.setdefault(name, replace(planned.table, awaits_rebuild=planned.empty))
    sources = [source for planned in planned_tables for source in planned.sources]
    after = state.with_origins([*sources, *(planned.table for planned in planned_tables)])
    return tuple(
        notice
        for change in plan.of(*GIVEN)
        for notice in option_notices(after, tables[change.name])
    )


def _perform(
    engine: Engine, state: State, definition_of: Mapping[Name, DefinedTable], plan: ProjectPlan
) -> None:
    first = _unread(state, plan)
    _drop(engine, first)
    altered = plan.of(Act.ALTER)
    rebuilt = plan.of(Act.REBUILD)
    # Tables that request something else of a source that they share are altered one after the
    # other.
    _alter(
        engine,
        (
            replace(change, options=dict.fromkeys(requests))
            for change in (*altered, *rebuilt)
            if (requests := _requests(change))
        ),
    )
    # A table that becomes FULL may have to leave a cycle before; a table that no longer is may join
    # one.
    _alter(engine, (change for change in altered if not _becomes_full(change)))
    definitions = [
        definition_of[change.name].request for change in (*plan.of(Act.CREATE), *rebuilt)
    ]
    if definitions:
        make(engine, definitions, frozenset(change.name for change in rebuilt))
    _alter(engine, (change for change in altered if _becomes_full(change)))
    _drop(engine, _names(plan.of(Act.DROP)) - first)


def _alter(engine: Engine, changes: Iterable[TableChange]) -> None:
    for change in changes:
        alter(engine, *change.name, Alteration.of(change.options))


def _drop(engine: Engine, names: frozenset[Name]) -> None:
    """Drop the tables, each with those of them that read it."""
    for name in sorted(names):
        tables = engine.catalog.state().stream_tables
        table = next((table for table in tables if (table.schema, table.name) == name), None)
        if table is not None:
            readers = {(table.schema, table.name) for table in downstream(tables, table.relation)}
            drop(engine, *name, cascade=readers <= names)


def _unread(state: State, plan: ProjectPlan) -> frozenset[Name]:
    """Return the tables to be dropped that no remaining table reads."""
    going = _names(plan.of(Act.DROP))
    return frozenset(
        name
        for name in going
        if (table := state.stream_table(*name)) is not None
        and {
            (table.schema, table.name) for table in downstream(state.stream_tables, table.relation)
        }
        <= going
    )


def _before_making(state: State, plan: ProjectPlan) -> State:
    """Return the state in which tables will be built: after first drops and altered options."""
    gone = [_table(state, name).relation for name in _unread(state, plan)]
    modes = [
        replace(
            _table(state, change.name), refresh_mode=refresh_mode(change.options["refresh_mode"])
        )
        for change in plan.of(Act.ALTER)
        if "refresh_mode" in change.options and not _becomes_full(change)
    ]
    state = state.with_origins(modes, gone)
    captured = [
        replace(table, options={**table.options, **requests})
        for change in plan.of(Act.ALTER)
        if (requests := _requests(change)) and (table := _table(state, change.name))
    ]
    return state.with_origins(captured)


def _requests(change: TableChange) -> dict[str, Any]:
    """Return those of the options that are requests to sources."""
    return {option: value for option, value in change.options.items() if option in REQUESTS}


def _table(state: State, name: Name) -> StreamTable:
    table = state.stream_table(*name)
    assert table is not None, "the plan was made from this state"
    return table


def _becomes_full(change: TableChange) -> bool:
    return change.options.get("refresh_mode") == RefreshMode.FULL


def _reads(engine: Engine, state: State, definitions: Sequence[DefinedTable]) -> Reads:
    """Return which existing tables and tables of the folder each table of the folder will read."""
    tables = {(table.schema, table.name) for table in state.stream_tables}
    tables |= {definition.name for definition in definitions}
    search_path = engine.database.search_path
    reads: dict[Name, frozenset[Name]] = {}
    with engine.database.session() as connection:
        for definition in definitions:
            table = state.stream_table(*definition.name)
            if table is not None and not differs(definition.request, table):
                reads[definition.name] = inputs_of(state, table)
            else:
                query = definition.request.query
                reads[definition.name] = frozenset(
                    read_tables(connection, query, search_path, tables)
                )
    return reads


def _names(changes: Iterable[TableChange]) -> frozenset[Name]:
    return frozenset(change.name for change in changes)


def check_queries(
    engine: Engine, state: State, definitions: Sequence[DefinedTable], reads: Reads
) -> tuple[PlannedTable, ...]:
    """Return the plans of tables that are created together, or raise UserError with the place."""
    if not definitions:
        return ()
    try:
        return _plan(engine, state, definitions)
    except HeadraceError as error:
        failing = _where(engine, state, definitions, reads, error)
        if failing is not None:
            where = f"In {failing.place}."
            error.detail = " ".join(part for part in (error.detail, where) if part)
        raise


def _plan(
    engine: Engine, state: State, definitions: Sequence[DefinedTable]
) -> tuple[PlannedTable, ...]:
    specs = []
    for definition in definitions:
        old = state.stream_table(*definition.name)
        specs.append(TableSpec(FIRST if old is None else ALTERED, definition.request, old))
    return plan(engine, state, specs).planned_tables


def _where(
    engine: Engine,
    state: State,
    definitions: Sequence[DefinedTable],
    reads: Reads,
    error: HeadraceError,
) -> DefinedTable | None:
    """Return the first table that fails alike if only the table and its inputs are built."""
    by_name = {definition.name: definition for definition in definitions}
    for name in in_order({name: reads[name] & by_name.keys() for name in by_name}):
        try:
            _plan(
                engine,
                state,
                [by_name[needed] for needed in _below(reads, name) if needed in by_name],
            )
        except HeadraceError as second:
            if (second.code, second.message) == (error.code, error.message):
                return by_name[name]
    return None


def _below(reads: Reads, name: Name) -> list[Name]:
    """Return a table and all that it reads, directly or not."""
    names = [name]
    for item in names:
        names += [read for read in sorted(reads.get(item, ())) if read not in names]
    return names
