"""Build stream tables: capture, copy and compute in full, or only record; publish them as one.

The order of writes keeps a crash harmless. A source is in the catalog before its triggers exist,
and the next writer takes down a source that no stream table reads. Where a source is captured
again, the same commit marks its readers for a rebuild. A log without an owner counts for nothing;
the next writer removes it. The logs of tables that are created without rows are made before the
transaction that records and serves those tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from headrace.catalog import Change, Record, State, Transaction
from headrace.catalog.records import (
    DatabaseRecord,
    Refresh,
    Relation,
    Source,
    Status,
    StreamTable,
    is_stale,
)
from headrace.engine import HOME, Engine
from headrace.engine.steps import Publish, RecordSources
from headrace.errors import HeadraceError, Transient, UserError
from headrace.graph import upstream
from headrace.ingest.ingest import ingest
from headrace.lifecycle.drop import remove_idle_sources
from headrace.lifecycle.logs import create_logs, order_of_source, order_of_stage
from headrace.lifecycle.partitioning import stored_apart
from headrace.lifecycle.planned_table import PlannedTable
from headrace.lifecycle.planning import Work
from headrace.publish.publish import Advanced
from headrace.publish.replace import replace_empty
from headrace.publish.served import create_served
from headrace.refresh.advance import advance
from headrace.refresh.attempt import Clock, RefreshAttempt
from headrace.refresh.change_size import expected_effort
from headrace.refresh.plan import Decision
from headrace.refresh.refresh import require_active
from headrace.refresh.run import RefreshRun
from headrace.refresh.scope import together
from headrace.relations.definition import follow, relation_of, used_columns
from headrace.store import Arrangement, Pin


def build(engine: Engine, work: Work, fence: int) -> dict[str, Refresh]:
    """Build the tables and return the refreshes by relation.

    A failure leaves the tables unchanged.
    """
    filling = tuple(planned for planned in work.planned_tables if not planned.empty)
    refreshes: tuple[Refresh, ...] = ()
    try:
        if work.planned_tables and not filling:
            _record_empty(engine, work, fence)
        else:
            state = _capture(engine, work, filling, fence)
            sources = frozenset(
                source.relation for planned in filling for source in planned.sources
            )
            needed = sources | _read_below(state, filling)
            state = ingest(engine, state, fence, needed=needed, retry=sources)
            _check_sources(state, filling)
            refreshes = _publish(engine, state, work, filling, fence)
    except BaseException as error:
        _clean_up(engine, fence, error)
        raise
    remove_idle_sources(engine, fence)
    return {refresh.table: refresh for refresh in refreshes}


def _read_below(state: State, planned_tables: tuple[PlannedTable, ...]) -> frozenset[str]:
    """Return the inputs of all existing stream tables below the planned ones."""
    inputs = {name for planned in planned_tables for name in planned.table.inputs}
    read = [table for table in state.stream_tables if table.relation in inputs]
    below = (
        upstream_table for table in read for upstream_table in upstream(state.stream_tables, table)
    )
    return frozenset(name for table in below for name in table.inputs)


def _clean_up(engine: Engine, fence: int, error: BaseException) -> None:
    """Remove what failed work left; after it was published, nothing is left."""
    try:
        remove_idle_sources(engine, fence)
    except HeadraceError as second:
        error.add_note(f"and cleaning up failed: {second.message}")


def _capture(engine: Engine, work: Work, filling: tuple[PlannedTable, ...], fence: int) -> State:
    """Record new sources with empty logs, for `ingest` to set up and copy.

    A source is recaptured even if all its readers are suspended.
    """
    state = engine.catalog.state()
    captured = {source.relation for source in state.sources}
    sources = {new.relation: new for _, new in work.recaptured}
    sources |= {s.relation: s for planned in filling for s in planned.sources}
    new = [source for relation, source in sources.items() if relation not in captured]
    home = any(database.id == HOME for database in state.databases)
    put: list[Record] = [] if home else [DatabaseRecord(HOME, "home", "", 0)]
    if new:
        relations = [(source, _relation(source)) for source in new]
        logs = {
            relation: Arrangement(order_of_source(source, relation))
            for source, relation in relations
        }
        put += [*create_logs(engine, logs, fence), *new]
    readers = _affected_readers(
        state, {old.relation: source.relation for old, source in work.recaptured}
    )
    put += [_failed(reader, work.failing) for reader in readers]
    if put:
        gone = tuple(old for old, _ in work.recaptured)
        with engine.step(RecordSources(tuple(source.relation for source in new))):
            engine.catalog.commit(Change(put=tuple(put), remove=gone), fence=fence)
    return engine.catalog.state()


def _relation(source: Source) -> Relation:
    stored = tuple((c.physical, c.type) for c in source.columns if c.type is not None)
    return Relation(source.relation, stored, tuple(name for name, _ in stored), Pin(0, 0))


def _affected_readers(state: State, moved: Mapping[str, str]) -> list[StreamTable]:
    """Return readers of replaced relations, bound to the new ones and marked for a rebuild."""
    readers: list[StreamTable] = []
    for reader in state.stream_tables:
        if not any(relation in moved for relation in reader.inputs):
            continue
        stopped = reader.status is Status.SUSPENDED or reader.is_uninitialized
        status = reader.status if stopped else Status.INITIALIZING
        reason = reader.reason if stopped else "what it reads was rebuilt"
        readers.append(replace(follow(reader, moved), status=status, reason=reason))
    return readers


def _failed(reader: StreamTable, failing: Mapping[str, str]) -> StreamTable:
    if reader.relation not in failing:
        return reader
    return reader.suspended(failing[reader.relation])


def _check_sources(state: State, planned_tables: tuple[PlannedTable, ...]) -> None:
    """Require that every source is captured, with all columns that are used."""
    for planned in planned_tables:
        for source in planned.sources:
            name = state.called(source)
            current = state.source(source.database, source.oid)
            if current is None or current.status is not Status.ACTIVE:
                reason = current.reason if current is not None else "the table does not exist"
                raise UserError("unsupported-source", f"could not capture {name}: {reason}")
            captured = {column.physical for column in current.columns if column.type is not None}
            if used_columns(planned.definition.plan, source.relation) - captured:
                raise Transient("cut-interrupted", f"table {name} was altered concurrently")


def _record_empty(engine: Engine, work: Work, fence: int) -> None:
    """Record and serve the tables without rows, in one transaction."""
    empty = begin_empty(engine, work.planned_tables, fence)
    state = engine.catalog.state()
    change = _catalog_change(state, work, empty, empty.replaced)
    with engine.step(Publish(tuple(planned.table.relation for planned in work.planned_tables))):
        engine.catalog.commit(change, fence=fence, apply=empty.serve)


def _catalog_change(
    state: State, work: Work, empty: EmptyTables, replaced: tuple[StreamTable, ...]
) -> Change:
    """Return the other records to write: tables without rows, replaced tables, marked readers."""
    gone = [table.relation for table in replaced]
    moved = {relation: work.moved[relation] for relation in gone}
    readers = _affected_readers(state.with_origins((), gone), moved)
    return Change(put=(*readers, *empty.put), remove=replaced, successors=tuple(moved.items()))


def _publish(
    engine: Engine, state: State, work: Work, planned_tables: tuple[PlannedTable, ...], fence: int
) -> tuple[Refresh, ...]:
    """Compute the tables at the newest epoch, and publish them with all that they read.

    What shall be without rows is recorded and served in the same transaction.
    """
    new = {planned.table.relation for planned in planned_tables}
    old = tuple(planned.old for planned in planned_tables if planned.old is not None)
    replaced = tuple(table.relation for table in old)
    after = state.with_origins((planned.table for planned in planned_tables), replaced)
    members = together(after, (planned.table for planned in planned_tables), engine.settings(state))
    below = {
        table.relation
        for planned in planned_tables
        for table in upstream(after.stream_tables, planned.table)
        if table.relation not in new
    }
    require_active(tuple(table for table in members if table.relation in below))
    # Others of their groups are refreshed with them if they can: a suspended one does not prevent
    # a rebuild, and one that reads what is replaced is rebuilt later.
    refreshed_along = tuple(
        table
        for table in members
        if table.relation in below
        or not (table.relation in new or _is_stopped(table) or set(table.inputs) & set(replaced))
    )
    run = RefreshRun(engine, state, refreshed_along, fence, replaced=old)
    run.run()
    for _, group in groupby(
        planned_tables, lambda planned: planned.cycle or planned.table.relation
    ):
        run.add(_make(run, tuple(group)))
    empty = begin_empty(engine, work.planned_tables, fence)
    besides = _catalog_change(run.state, work, empty, (*old, *empty.replaced))
    return tuple(run.publish(besides, empty.serve).values())


def _is_stopped(table: StreamTable) -> bool:
    return table.status is Status.SUSPENDED or is_stale(table)


def _make(run: RefreshRun, group: tuple[PlannedTable, ...]) -> tuple[Advanced, ...]:
    """Compute one table, or all of a cycle as one."""
    definitions = tuple(planned.definition for planned in group)
    relations = [
        (s, relation_of(s, Pin(0, 0))) for definition in definitions for s in definition.stages
    ]
    apart = stored_apart(
        (planned.table for planned in group), (relation for _, relation in relations)
    )
    logs = {
        relation: Arrangement(order_of_stage(stage, relation), apart.get(relation.id))
        for stage, relation in relations
    }
    engine, clock = run.engine, Clock()
    state = run.state.with_relations(create_logs(engine, logs, run.fence))
    inputs = frozenset(name for planned in group for name in planned.table.inputs)
    effort = expected_effort(engine, state, tuple(planned.table for planned in group), inputs)
    attempts = tuple(
        RefreshAttempt(
            planned.table, run.epoch, Decision("FULL", planned.reason), clock, effort=effort
        )
        for planned in group
    )
    done = advance(engine, attempts, definitions, inputs, state, run.moved)
    return tuple(
        replace(advanced, old=planned.old) for advanced, planned in zip(done, group, strict=True)
    )


NOT_FILLED = "created without rows; its first refresh fills it"


@dataclass(frozen=True)
class EmptyTables:
    """Tables as they are recorded without rows, each with the one whose place it takes."""

    tables: tuple[tuple[StreamTable | None, StreamTable], ...]

    @staticmethod
    def of(planned_tables: Iterable[PlannedTable]) -> EmptyTables:
        return EmptyTables(
            tuple((planned.old, _recorded(planned)) for planned in planned_tables if planned.empty)
        )

    @property
    def put(self) -> tuple[Record, ...]:
        return tuple(new for _, new in self.tables)

    @property
    def replaced(self) -> tuple[StreamTable, ...]:
        return tuple(old for old, _ in self.tables if old is not None)

    def serve(self, transaction: Transaction) -> None:
        """Make the served tables, with their columns and without rows."""
        for old, new in self.tables:
            if old is None:
                create_served(transaction, new)
            else:
                replace_empty(transaction, old, new)


def begin_empty(engine: Engine, planned_tables: Iterable[PlannedTable], fence: int) -> EmptyTables:
    """Create empty logs, so that readers in Spark find them, and return the tables to record."""
    empty = tuple(planned for planned in planned_tables if planned.empty)
    if empty:
        finals = ((planned.definition.final, Pin(0, 0)) for planned in empty)
        relations = [(stage, relation_of(stage, pin)) for stage, pin in finals]
        logs = {
            relation: Arrangement(order_of_stage(stage, relation)) for stage, relation in relations
        }
        create_logs(engine, logs, fence)
    return EmptyTables.of(empty)


def _recorded(planned: PlannedTable) -> StreamTable:
    """Return the table with the stream tables that it reads; its first fill looks up sources."""
    sources = frozenset(source.relation for source in planned.sources)
    table = planned.table
    return replace(
        table,
        inputs=tuple(relation for relation in table.inputs if relation not in sources),
        names={
            relation: named for relation, named in table.names.items() if relation not in sources
        },
        edges={
            relation: words for relation, words in table.edges.items() if relation not in sources
        },
        views=(),
        reason=NOT_FILLED,
        awaits_rebuild=True,
    )
