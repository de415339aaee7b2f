"""Ingest: a cut of a source database becomes an epoch of its sources' relations.

The order of writes is what makes it exactly once: the logs first (beyond their pins nothing
counts), then one catalog transaction with cut, epoch and pins, then the acknowledgement that
empties the buffers. A crash between any two of them leaves nothing lost and nothing doubled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from headrace.capture.changes import acknowledge, change_batches, pending
from headrace.capture.cut import OpenCut, open_cut
from headrace.capture.dirt import captured_part
from headrace.capture.setup import set_up
from headrace.catalog import Change, State
from headrace.catalog.records import Cut, Database, Relation, Source, Status, StreamTable, is_stale
from headrace.definition import define, used_columns
from headrace.engine import Engine
from headrace.errors import HeadraceError, NeedsReinit, SchemaChanged, Transient
from headrace.ingest.copying import copy_source
from headrace.ingest.shape import shape_of
from headrace.relations.rows import with_missing_columns
from headrace.source.connection import Database as Connections
from headrace.source.introspect import inspect
from headrace.source.table import SourceColumn
from headrace.steps import (
    Acknowledge,
    AppendChange,
    CopySource,
    PinCut,
    Postpone,
    SetUpCapture,
    TakeCut,
)
from headrace.store import net

ATTEMPTS = 5


def ingest(
    engine: Engine,
    state: State,
    fence: int,
    *,
    needed: frozenset[str] | None = None,
    retry: frozenset[str] = frozenset(),
    inside: Callable[[OpenCut, State], None] | None = None,
) -> State:
    """Take in what changed in databases since their last cuts; the catalog's state afterwards.

    Databases are those of the relations in `needed`, cut one after the other; or all with sources.
    Sources that are INITIALIZING, that were rewritten behind their triggers, or that are
    SUSPENDED and named in `retry` (relation ids) are copied anew. With nothing new, nothing is
    written and no epoch is used. `inside` is called while a cut is still open, and makes one be
    taken in any case.
    """
    for number in databases_of(state, needed):
        state = ingest_database(engine, state, number, fence, retry=retry, inside=inside)
    return state


def databases_of(state: State, needed: frozenset[str] | None = None) -> tuple[int, ...]:
    """The databases with sources, or with those sources that are needed."""
    wanted = {s.database for s in state.sources if needed is None or s.relation in needed}
    return tuple(sorted(wanted))


def ingest_database(
    engine: Engine,
    state: State,
    number: int,
    fence: int,
    *,
    retry: frozenset[str] = frozenset(),
    inside: Callable[[OpenCut, State], None] | None = None,
) -> State:
    """What `ingest` does, for one database."""
    database = engine.source_database(state.database(number))
    sources = sources_in(state, number)
    copies = frozenset(s.oid for s in sources if _wants_copy(s, retry))
    active = tuple(s for s in sources if s.status is Status.ACTIVE)
    snapshot = state.database(number).snapshot
    with database.session() as connection:
        news = pending(connection, active, snapshot) if active and snapshot else frozenset()
    if not news and not copies and inside is None:
        return state
    for _ in range(ATTEMPTS):
        sources = sources_in(state, number)
        taking = tuple(s for s in sources if s.oid in copies or s.status is Status.ACTIVE)
        try:
            _mend_capture(engine, state, tuple(s for s in taking if s.oid in copies), database)
            # Where everything is copied anew there is nothing to continue.
            going_on = any(source.oid not in copies for source in taking)
            previous = snapshot if going_on else None
            with open_cut(database, taking, lock=copies, previous=previous) as cut:
                rewritten = frozenset(cut.dirty) - copies
                if not rewritten:
                    with engine.step(TakeCut(tuple(source.relation for source in taking))):
                        state = _take(engine, state, number, fence, cut, taking, copies)
                    if inside is not None:
                        inside(cut, state)
                    return state
                # Tables to be copied must be locked before the snapshot is taken: once more.
                copies |= rewritten
        except Transient as error:
            others = tuple(s for s in taking if s.oid in copies and s.relation not in retry)
            if error.code != "source-busy" or not others:
                raise
            # A writer keeps tables busy that nobody asked for now: only their readers wait.
            state = _postpone(engine, state, others, error, fence)
            copies -= {source.oid for source in others}
    raise Transient(
        "cut-interrupted",
        "source tables changed shape faster than a cut could be taken",
        hint="Try again when the schema changes are done.",
    )


def sources_in(state: State, number: int) -> tuple[Source, ...]:
    """The sources of one database."""
    return tuple(source for source in state.sources if source.database == number)


def _wants_copy(source: Source, retry: frozenset[str]) -> bool:
    suspended = source.status is Status.SUSPENDED and source.relation in retry
    return source.status is Status.INITIALIZING or suspended


def _postpone(
    engine: Engine, state: State, sources: tuple[Source, ...], error: HeadraceError, fence: int
) -> State:
    """Leave sources out of the cut; a refresh of one of their readers copies them."""
    taken = tuple(_suspended(state, s, state.relation(s.relation), error) for s in sources)
    records = tuple(one.source for one in taken)
    with (
        engine.step(Postpone(tuple(source.relation for source in sources))),
        engine.changing(state) as current,
    ):
        change = Change(put=(*records, *_readers(current, taken)))
        engine.catalog.commit(change, fence=fence)
    return engine.catalog.state()


def _mend_capture(
    engine: Engine, state: State, sources: tuple[Source, ...], database: Connections
) -> None:
    """Triggers and buffers that fit the tables as they are, before the snapshot is taken."""
    with database.session() as connection:
        tables = inspect(connection, [source.oid for source in sources])
    settings = engine.settings(state)
    for source in sources:
        if source.oid in tables:
            table = captured_part(source, tables[source.oid])
            with engine.step(SetUpCapture(source.relation)):
                set_up(
                    database,
                    table,
                    max_buffer_mb=settings.max_buffer_mb,
                    unlogged=settings.unlogged_buffers,
                )


@dataclass(frozen=True)
class Taken:
    """What a source contributed to a cut.

    `complaints` gives, for each reader that cannot go on, the reason; `copied` says that the
    source is whole again, so that readers it had stopped may go on.
    """

    source: Source
    relation: Relation
    complaints: dict[str, str] = field(default_factory=dict)
    copied: bool = False


def _take(
    engine: Engine,
    state: State,
    number: int,
    fence: int,
    cut: OpenCut,
    sources: tuple[Source, ...],
    copies: frozenset[int],
) -> State:
    """Append every source's change at a new epoch, pin them, acknowledge."""
    database = state.database(number)
    if any(source.oid not in copies for source in sources):
        _check_identity(database, cut)
    epoch = engine.catalog.next_epoch()
    taken = tuple(
        _take_one(engine, state, cut, source, epoch, copy=source.oid in copies)
        for source in sources
    )
    if copies:
        cut.confirm()
    records = [record for one in taken for record in (one.source, one.relation)]
    moved = replace(
        database,
        system_identifier=cut.cut.system_identifier,
        timeline=cut.cut.timeline,
        epoch=epoch,
        snapshot=cut.cut.snapshot,
        cut_at=cut.cut.taken_at,
    )
    known = Cut(epoch, database.id, cut.cut.snapshot, cut.cut.taken_at)
    with engine.step(PinCut(epoch)), engine.changing(state) as current:
        change = Change(put=(*records, *_readers(current, taken), moved), epochs=(known,))
        engine.catalog.commit(change, fence=fence)
    with engine.step(Acknowledge(epoch)):
        oids = [one.source.oid for one in taken]
        acknowledge(cut.database, oids, cut.cut.snapshot, epoch)
    return engine.catalog.state()


def _check_identity(database: Database, cut: OpenCut) -> None:
    """Another server, or this one rewound, is never continued."""
    if not database.system_identifier:
        return
    known = (database.system_identifier, database.timeline)
    found = (cut.cut.system_identifier, cut.cut.timeline)
    if known != found:
        raise NeedsReinit(
            "source-rewound",
            "the source database is not the one that was captured",
            detail=f"System identifier and timeline were {known}, now they are {found}.",
            hint="It was restored or replaced. Drop and create the stream tables again.",
        )


def _take_one(
    engine: Engine, state: State, cut: OpenCut, source: Source, epoch: int, *, copy: bool
) -> Taken:
    relation = state.relation(source.relation)
    try:
        if not copy:
            return _take_change(engine, state, cut, source, relation, epoch)
        return _take_copy(engine, state, cut, source, relation, epoch)
    except (NeedsReinit, SchemaChanged) as error:
        return _suspended(state, source, relation, error)


def _take_change(
    engine: Engine, state: State, cut: OpenCut, source: Source, relation: Relation, epoch: int
) -> Taken:
    before = state.database(source.database).snapshot
    source = replace(source, storage=cut.tables[source.oid].storage)
    batches = change_batches(cut.database, source, before, cut.cut.snapshot)
    rows = (with_missing_columns(net(batch), relation) for batch in batches)
    with engine.step(AppendChange(relation.id, epoch)):
        pin = engine.store.extend(relation.id, relation.pin, epoch, rows)
    return Taken(source, replace(relation, pin=pin))


def _take_copy(
    engine: Engine, state: State, cut: OpenCut, source: Source, relation: Relation, epoch: int
) -> Taken:
    table = cut.tables.get(source.oid)
    if table is None:
        raise SchemaChanged(
            "source-dropped", f"source table {source.schema}.{source.name} was dropped"
        )
    settings = engine.settings(state)
    part = captured_part(source, table)
    with engine.step(CopySource(relation.id, epoch)):
        pin = copy_source(engine, settings, cut, part, relation, epoch)
    shape = shape_of(source, table)
    complaints = {}
    for reader in state.readers(source.relation):
        # Those that are to be made anew are bound to the source as it is then.
        if reader.status is Status.SUSPENDED or is_stale(reader):
            continue
        lost = [column for column in shape.lost if _uses(reader, state, source, column)]
        if lost:
            complaints[reader.relation] = shape.reason(source, lost[0])
    whole = replace(
        source,
        columns=tuple(replace(c, type=None) if c in shape.lost else c for c in source.columns),
        # A key that is gone was used by queries that were bound to it; they stay what they were.
        keys=tuple(dict.fromkeys((*source.keys, *table.keys))),
        storage=table.storage,
        status=Status.ACTIVE,
        reason=None,
    )
    return Taken(whole, replace(relation, pin=pin), complaints, copied=True)


def _uses(reader: StreamTable, state: State, source: Source, column: SourceColumn) -> bool:
    return column.physical in used_columns(define(reader, state).plan, source.relation)


def _suspended(state: State, source: Source, relation: Relation, error: HeadraceError) -> Taken:
    """The source and all that read it stand still, with the reason; everything else goes on."""
    reason = error.message if error.detail is None else f"{error.message}: {error.detail}"
    complaints = {reader.relation: reason for reader in state.readers(source.relation)}
    return Taken(replace(source, status=Status.SUSPENDED, reason=reason), relation, complaints)


def _readers(state: State, taken: tuple[Taken, ...]) -> tuple[StreamTable, ...]:
    """The stream tables that stop, or go on again, with this cut."""
    complaints = {name: why for one in taken for name, why in one.complaints.items()}
    stopped = {one.source.relation for one in taken if one.source.status is Status.SUSPENDED}
    whole = {one.source.relation for one in taken if one.copied}
    result = []
    for table in state.stream_tables:
        if table.relation in complaints:
            reason = complaints[table.relation]
            result.append(replace(table, status=Status.SUSPENDED, reason=reason))
        elif table.held or is_stale(table) or table.status is not Status.SUSPENDED:
            continue
        elif _freed(state, table, whole, stopped):
            result.append(replace(table, status=Status.ACTIVE, reason=None))
    return tuple(result)


def _freed(state: State, table: StreamTable, whole: set[str], stopped: set[str]) -> bool:
    """Whether the sources that had stopped the table are all whole again."""
    had_stopped = {
        source.relation
        for source in state.sources
        if source.relation in table.inputs and source.status is Status.SUSPENDED
    }
    return bool(had_stopped) and had_stopped <= whole and not stopped & set(table.inputs)
