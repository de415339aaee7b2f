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
from headrace.refresh.change_size import ahead_of
from headrace.refresh.plan import Decision
from headrace.refresh.refresh import require_active
from headrace.refresh.run import RefreshRun
from headrace.refresh.scope import together
from headrace.relations.definition import follow, relation_of, used_columns
from headrace.store import Arrangement, Pin


def build(engine: Engine, work: Work, fence: int) -> dict[str, Refresh]:
    """Do the work; the refreshes by relation. On any failure the tables are as they were."""
    filling = tuple(making for making in work.makings if not making.empty)
    refreshes: tuple[Refresh, ...] = ()
    try:
        if work.makings and not filling:
            _record_empty(engine, work, fence)
        else:
            state = _capture(engine, work, filling, fence)
            sources = frozenset(one.relation for making in filling for one in making.sources)
            needed = sources | _read_below(state, filling)
            state = ingest(engine, state, fence, needed=needed, retry=sources)
            _check_sources(state, filling)
            refreshes = _publish(engine, state, work, filling, fence)
    except BaseException as error:
        _clean_up(engine, fence, error)
        raise
    remove_idle_sources(engine, fence)
    return {refresh.table: refresh for refresh in refreshes}


def _read_below(state: State, makings: tuple[PlannedTable, ...]) -> frozenset[str]:
    """What the stream tables that exist and are read by those to be made read themselves."""
    inputs = {name for making in makings for name in making.table.inputs}
    read = [table for table in state.stream_tables if table.relation in inputs]
    below = (one for table in read for one in upstream(state.stream_tables, table))
    return frozenset(name for one in below for name in one.inputs)


def _clean_up(engine: Engine, fence: int, error: BaseException) -> None:
    """Remove what failed work left; if it failed after it was published, nothing is."""
    try:
        remove_idle_sources(engine, fence)
    except HeadraceError as second:
        error.add_note(f"and cleaning up failed: {second.message}")


def _capture(engine: Engine, work: Work, filling: tuple[PlannedTable, ...], fence: int) -> State:
    """New sources enter the catalog with empty logs; `ingest` sets them up and copies them.

    One that is captured again does so even if all its readers are suspended.
    """
    state = engine.catalog.state()
    known = {source.relation for source in state.sources}
    sources = {new.relation: new for _, new in work.recaptured}
    sources |= {s.relation: s for making in filling for s in making.sources}
    new = [source for relation, source in sources.items() if relation not in known]
    home = any(database.id == HOME for database in state.databases)
    put: list[Record] = [] if home else [DatabaseRecord(HOME, "home", "", 0)]
    if new:
        relations = [(source, _relation(source)) for source in new]
        logs = {one: Arrangement(order_of_source(source, one)) for source, one in relations}
        put += [*create_logs(engine, logs, fence), *new]
    told = _told(state, {old.relation: source.relation for old, source in work.recaptured})
    put += [_failed(reader, work.failing) for reader in told]
    if put:
        gone = tuple(old for old, _ in work.recaptured)
        with engine.step(RecordSources(tuple(source.relation for source in new))):
            engine.catalog.commit(Change(put=tuple(put), remove=gone), fence=fence)
    return engine.catalog.state()


def _relation(source: Source) -> Relation:
    stored = tuple((c.physical, c.type) for c in source.columns if c.type is not None)
    return Relation(source.relation, stored, tuple(name for name, _ in stored), Pin(0, 0))


def _told(state: State, moved: Mapping[str, str]) -> list[StreamTable]:
    """Readers of relations that go, with those that come instead: they have to be made anew."""
    told: list[StreamTable] = []
    for reader in state.stream_tables:
        if not any(one in moved for one in reader.inputs):
            continue
        stopped = reader.status is Status.SUSPENDED or reader.is_uninitialized
        status = reader.status if stopped else Status.INITIALIZING
        reason = reader.reason if stopped else "what it reads was made anew"
        told.append(replace(follow(reader, moved), status=status, reason=reason))
    return told


def _failed(reader: StreamTable, failing: Mapping[str, str]) -> StreamTable:
    if reader.relation not in failing:
        return reader
    return reader.suspended(failing[reader.relation])


def _check_sources(state: State, makings: tuple[PlannedTable, ...]) -> None:
    """Every source is captured, with all columns that are used."""
    for making in makings:
        for source in making.sources:
            name = state.called(source)
            current = state.source(source.database, source.oid)
            if current is None or current.status is not Status.ACTIVE:
                reason = current.reason if current is not None else "it is gone"
                raise UserError("unsupported-source", f"{name} cannot be captured: {reason}")
            captured = {column.physical for column in current.columns if column.type is not None}
            if used_columns(making.definition.plan, source.relation) - captured:
                raise Transient("cut-interrupted", f"{name} was altered just now")


def _record_empty(engine: Engine, work: Work, fence: int) -> None:
    """Record and serve the tables without rows, in one transaction."""
    empty = begin_empty(engine, work.makings, fence)
    state = engine.catalog.state()
    change = _besides(state, work, empty, empty.replaced)
    with engine.step(Publish(tuple(making.table.relation for making in work.makings))):
        engine.catalog.commit(change, fence=fence, apply=empty.serve)


def _besides(
    state: State, work: Work, empty: EmptyTables, replaced: tuple[StreamTable, ...]
) -> Change:
    """What is recorded with the tables: those without rows, what goes, and who has to know."""
    gone = [one.relation for one in replaced]
    moved = {one: work.moved[one] for one in gone}
    told = _told(state.with_origins((), gone), moved)
    return Change(put=(*told, *empty.put), remove=replaced, successors=tuple(moved.items()))


def _publish(
    engine: Engine, state: State, work: Work, makings: tuple[PlannedTable, ...], fence: int
) -> tuple[Refresh, ...]:
    """Compute the tables at the newest epoch, and publish them with all that they read.

    What shall be without rows is recorded and served in the same transaction.
    """
    new = {making.table.relation for making in makings}
    old = tuple(making.old for making in makings if making.old is not None)
    replaced = tuple(one.relation for one in old)
    after = state.with_origins((making.table for making in makings), replaced)
    wanted = together(after, (making.table for making in makings), engine.settings(state))
    below = {
        one.relation
        for making in makings
        for one in upstream(after.stream_tables, making.table)
        if one.relation not in new
    }
    require_active(tuple(one for one in wanted if one.relation in below))
    # Others of their groups come along if they can: one that stands still keeps nobody from being
    # made anew, and one that reads what is replaced is made anew later.
    coming = tuple(
        one
        for one in wanted
        if one.relation in below
        or not (one.relation in new or _stands_still(one) or set(one.inputs) & set(replaced))
    )
    sweep = RefreshRun(engine, state, coming, fence, replaced=old)
    sweep.run()
    for _, group in groupby(makings, lambda one: one.cycle or one.table.relation):
        sweep.add(_make(sweep, tuple(group)))
    empty = begin_empty(engine, work.makings, fence)
    besides = _besides(sweep.state, work, empty, (*old, *empty.replaced))
    return tuple(sweep.publish(besides, empty.serve).values())


def _stands_still(table: StreamTable) -> bool:
    return table.status is Status.SUSPENDED or is_stale(table)


def _make(sweep: RefreshRun, group: tuple[PlannedTable, ...]) -> tuple[Advanced, ...]:
    """Compute one table, or all of a cycle as one."""
    definitions = tuple(making.definition for making in group)
    relations = [(s, relation_of(s, Pin(0, 0))) for one in definitions for s in one.stages]
    apart = stored_apart((making.table for making in group), (one for _, one in relations))
    logs = {
        relation: Arrangement(order_of_stage(stage, relation), apart.get(relation.id))
        for stage, relation in relations
    }
    engine, clock = sweep.engine, Clock()
    state = sweep.state.with_relations(create_logs(engine, logs, sweep.fence))
    inputs = frozenset(name for making in group for name in making.table.inputs)
    effort = ahead_of(engine, state, tuple(making.table for making in group), inputs)
    attempts = tuple(
        RefreshAttempt(
            making.table, sweep.epoch, Decision("FULL", making.reason), clock, effort=effort
        )
        for making in group
    )
    done = advance(engine, attempts, definitions, inputs, state, sweep.moved)
    return tuple(replace(one, old=making.old) for one, making in zip(done, group, strict=True))


NOT_FILLED = "created without rows; its first refresh fills it"


@dataclass(frozen=True)
class EmptyTables:
    """Tables as they are recorded without rows, each with the one whose place it takes."""

    tables: tuple[tuple[StreamTable | None, StreamTable], ...]

    @staticmethod
    def of(makings: Iterable[PlannedTable]) -> EmptyTables:
        return EmptyTables(tuple((one.old, _recorded(one)) for one in makings if one.empty))

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


def begin_empty(engine: Engine, makings: Iterable[PlannedTable], fence: int) -> EmptyTables:
    """Make empty logs, so that readers in Spark find the tables; the tables to be recorded."""
    empty = tuple(making for making in makings if making.empty)
    if empty:
        finals = ((one.definition.final, Pin(0, 0)) for one in empty)
        relations = [(stage, relation_of(stage, pin)) for stage, pin in finals]
        logs = {one: Arrangement(order_of_stage(stage, one)) for stage, one in relations}
        create_logs(engine, logs, fence)
    return EmptyTables.of(empty)


def _recorded(making: PlannedTable) -> StreamTable:
    """The table with the stream tables that it reads; sources are looked up when it is filled."""
    sources = frozenset(source.relation for source in making.sources)
    table = making.table
    return replace(
        table,
        inputs=tuple(one for one in table.inputs if one not in sources),
        names={one: named for one, named in table.names.items() if one not in sources},
        edges={one: words for one, words in table.edges.items() if one not in sources},
        views=(),
        reason=NOT_FILLED,
        awaits_rebuild=True,
    )
