"""Taking in one cut: what every source contributes, pinned together, then acknowledged.

The order of writes makes it exactly once: the Delta logs first (beyond their pins nothing counts),
then the source database gets the epoch, then one catalog transaction has cut, epoch and pins, then
the acknowledgement empties the buffers and advances the slot. A crash between any two of them loses
nothing and doubles nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headrace.capture.announced import announce
from headrace.capture.changes import acknowledge, change_batches
from headrace.capture.cut import OpenCut
from headrace.capture.layout import FULL as BUFFER_FULL
from headrace.capture.recopy_reasons import captured_part
from headrace.capture.wal.following import Following
from headrace.catalog import Change, State, Transaction
from headrace.catalog.alert import alert_source
from headrace.catalog.records import (
    CaptureMode,
    CutRecord,
    DatabaseRecord,
    Relation,
    Source,
    Status,
    StreamTable,
    is_stale,
)
from headrace.engine import Engine
from headrace.engine.steps import Acknowledge, Announce, AppendChange, CopySource, PinCut
from headrace.errors import HeadraceError, NeedsReinit, SchemaChanged, UserError
from headrace.ingest.append_only import alert_if_reverted, watched
from headrace.ingest.copying import copy_source
from headrace.ingest.from_wal import NO_WAL_CHANGES, WalChanges, slot_reader_of
from headrace.ingest.modes import announce_change
from headrace.ingest.shape import Shape, shape_of
from headrace.ingest.transition import completes
from headrace.relations.definition import define, named_columns, used_columns
from headrace.relations.rows import with_missing_columns
from headrace.store import net

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PendingCut:
    """A cut about to be taken in, and the sources that take part in it.

    Sources are given by their oids. `copies` are copied, of all others the changes are taken:
    from the WAL (`log`) or from their buffers. Those that have `fallen` are captured by triggers
    from now on, for a reason. Of those in transition to the WAL, `ready` ones complete it if the
    cut lets them, and those `stuck` stay with their triggers, each for a reason.
    """

    number: int
    cut: OpenCut
    sources: tuple[Source, ...]
    copies: frozenset[int]
    fallen: Mapping[int, str] = field(default_factory=dict)
    ready: frozenset[int] = frozenset()
    stuck: Mapping[int, str] = field(default_factory=dict)
    log: WalChanges = NO_WAL_CHANGES


@dataclass(frozen=True)
class Taken:
    """What a source contributed to a cut.

    `complaints` gives, for each reader that cannot go on, the reason, and `rebuilt` says which of
    them only have to be rebuilt; `copied` says that the source is whole again, so that readers it
    had stopped may go on.
    """

    source: Source
    relation: Relation
    complaints: dict[str, str] = field(default_factory=dict)
    rebuilt: frozenset[str] = frozenset()
    copied: bool = False


def take(engine: Engine, state: State, taking: PendingCut, fence: int) -> State:
    """Append every source's change at a new epoch, pin them, acknowledge."""
    cut, database = taking.cut, state.database(taking.number)
    if any(source.oid not in taking.copies for source in taking.sources):
        _check_identity(database, cut)
    epoch = engine.catalog.next_epoch()
    contributions = (_take_one(engine, state, taking, source, epoch) for source in taking.sources)
    taken = tuple(
        replace(
            contribution,
            source=_watched(
                engine, state, _moved(taking, contribution.source), contribution.relation
            ),
        )
        for contribution in contributions
    )
    if taking.copies:
        cut.confirm()
    records = [
        record for contribution in taken for record in (contribution.source, contribution.relation)
    ]
    moved = replace(
        database,
        system_identifier=cut.cut.system_identifier,
        timeline=cut.cut.timeline,
        epoch=epoch,
        snapshot=cut.cut.snapshot,
        cut_at=cut.cut.taken_at,
        following=_following(database, taking.log),
        failing_since=None,
        failure=None,
    )
    cut_record = CutRecord(epoch, database.id, cut.cut.snapshot, cut.cut.taken_at)
    before = {source.relation: source for source in taking.sources}

    def apply(transaction: Transaction) -> None:
        for contribution in taken:
            old = before[contribution.source.relation]
            alert_if_reverted(transaction, state, old, contribution.source)
            if old.mode is not contribution.source.mode:
                announce_change(transaction, state, old, contribution.source)
            if cut.recopy_reasons.get(contribution.source.oid) == BUFFER_FULL:
                message = f"copied again: {BUFFER_FULL}"
                alert_source(
                    transaction, state.name_parts(contribution.source), "buffer-full", message
                )

    oids = [contribution.source.oid for contribution in taken]
    if cut.announced is not None:
        with engine.step(Announce(epoch)):
            announce(cut.database, oids, epoch)
    with engine.step(PinCut(epoch)), engine.changing(state) as current:
        change = Change(
            put=(*records, *stopped_or_freed(current, taken), moved), epochs=(cut_record,)
        )
        engine.catalog.commit(change, fence=fence, apply=apply)
    with engine.step(Acknowledge(epoch)):
        acknowledge(cut.database, oids, cut.cut.snapshot, epoch)
        _acknowledge(engine, moved, taking)
    return engine.catalog.state()


def _moved(taking: PendingCut, source: Source) -> Source:
    """Return the source with the mode that it has from this cut on."""
    reason = taking.fallen.get(source.oid) or taking.stuck.get(source.oid)
    if reason is not None:
        return by_triggers(source, reason)
    if source.oid in taking.ready and completes(source, taking.cut.cut.snapshot):
        return replace(source, mode=CaptureMode.WAL, mode_reason=None)
    return source


def _watched(engine: Engine, state: State, source: Source, relation: Relation) -> Source:
    return watched(engine.store, state, source, state.relation(relation.id).pin, relation)


def by_triggers(source: Source, reason: str) -> Source:
    """Return the source captured by triggers, for a reason."""
    return replace(source, mode=CaptureMode.TRIGGER, mode_reason=reason, followed=None)


def _following(database: DatabaseRecord, log: WalChanges) -> Following | None:
    """Return the record of reading the WAL, with the position that the slot will advance to."""
    if database.following is None or log.released is None:
        return database.following
    acknowledged = max(database.following.acknowledged, log.released)
    return replace(database.following, acknowledged=acknowledged)


def _acknowledge(engine: Engine, database: DatabaseRecord, taking: PendingCut) -> None:
    """Advance the slot; a failure only has the same WAL read once more."""
    if database.following is None or taking.log.released is None:
        return
    try:
        slot_reader_of(engine, database, database.following).acknowledge(taking.log.released)
    except HeadraceError as error:
        logger.warning("the slot was not moved", extra={"code": error.code, "error": error.message})


def _check_identity(database: DatabaseRecord, cut: OpenCut) -> None:
    """Raise `source-rewound` if the server is another one, or was restored to an earlier point."""
    if not database.system_identifier:
        return
    recorded = (database.system_identifier, database.timeline)
    current = (cut.cut.system_identifier, cut.cut.timeline)
    if recorded != current:
        raise NeedsReinit(
            "source-rewound",
            "the source database is not the one that was captured",
            detail=f"System identifier and timeline were {recorded}, now they are {current}.",
            hint="It was restored or replaced. Drop and create the stream tables again.",
        )


def _take_one(
    engine: Engine, state: State, taking: PendingCut, source: Source, epoch: int
) -> Taken:
    relation = state.relation(source.relation)
    problem = taking.cut.forbidden.get(source.oid)
    if problem is not None:
        return suspended(state, source, relation, problem)
    try:
        if source.oid not in taking.copies:
            return _take_change(engine, state, taking, source, relation, epoch)
        return _take_copy(engine, state, taking.cut, source, relation, epoch)
    except (NeedsReinit, SchemaChanged) as error:
        return suspended(state, source, relation, error)
    except UserError as error:
        if error.code != "permission-denied" or source.status is Status.INITIALIZING:
            raise
        return suspended(state, source, relation, error)


def _take_change(
    engine: Engine, state: State, taking: PendingCut, source: Source, relation: Relation, epoch: int
) -> Taken:
    cut, before = taking.cut, state.database(source.database).snapshot
    source = replace(source, storage=cut.tables[source.oid].storage)
    if source.mode is CaptureMode.WAL:
        batches = taking.log.rows(source.oid)
    else:
        most = engine.settings(state).compact_threshold
        batches = change_batches(cut.database, source, before, cut.cut.snapshot, most)
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
    complaints: dict[str, str] = {}
    rebuilt: set[str] = set()
    for reader in state.readers(source.relation):
        lack = _lack(reader, state, source, shape) if _goes_on(reader, source) else None
        if lack is not None:
            complaints[reader.relation] = lack.reason
            if lack.rebuilt:
                rebuilt.add(reader.relation)
    whole = replace(
        source,
        columns=tuple(replace(c, type=None) if c in shape.lost else c for c in source.columns),
        # A key that is gone was used by queries that were bound to it; they stay what they were.
        keys=tuple(dict.fromkeys((*source.keys, *table.keys))),
        storage=table.storage,
        status=Status.ACTIVE,
        reason=None,
    )
    return Taken(whole, replace(relation, pin=pin), complaints, frozenset(rebuilt), copied=True)


def _goes_on(reader: StreamTable, source: Source) -> bool:
    """Return whether a reader goes on once the source is whole.

    Readers that are to be rebuilt are bound to the source as it is then. A suspended reader goes on
    if the source had stopped it, whatever else may have happened since.
    """
    if reader.held or is_stale(reader):
        return False
    return reader.status is not Status.SUSPENDED or source.status is Status.SUSPENDED


@dataclass(frozen=True)
class Lack:
    """Why a reader cannot go on, and whether it only waits to be rebuilt."""

    reason: str
    rebuilt: bool


def _lack(reader: StreamTable, state: State, source: Source, shape: Shape) -> Lack | None:
    """Return what a reader lacks of a source: columns that it uses and that are dropped or altered.

    The reader is rebuilt if the columns are wider, or if its query does not name them.
    """
    try:
        plan = define(reader, state).plan
    except UserError:
        # A column was lost earlier, and another reason to be suspended has come since.
        reason = f"a column of {source.schema}.{source.name} that it uses was dropped or altered"
        return Lack(reason, reader.awaits_rebuild)
    used = used_columns(plan, source.relation)
    lost = [column for column in shape.lost if column.physical in used]
    if not lost:
        return None
    named = named_columns(plan, source.relation)
    needed = [column for column in lost if column.physical in named and column not in shape.wider]
    return Lack(shape.reason(source, (needed or lost)[0]), rebuilt=not needed)


def suspended(state: State, source: Source, relation: Relation, error: HeadraceError) -> Taken:
    """Return the source and all that read it suspended, with the reason; all else goes on."""
    reason = error.message if error.detail is None else f"{error.message}: {error.detail}"
    complaints = {reader.relation: reason for reader in state.readers(source.relation)}
    if source.mode is CaptureMode.WAL:
        # It will be copied in any case: until then the WAL is not retained for it.
        source = by_triggers(source, "it is suspended")
    return Taken(replace(source, status=Status.SUSPENDED, reason=reason), relation, complaints)


def stopped_or_freed(state: State, taken: tuple[Taken, ...]) -> tuple[StreamTable, ...]:
    """Return the stream tables that stop, or go on again, with this cut."""
    complaints = {
        name: why for contribution in taken for name, why in contribution.complaints.items()
    }
    rebuilt = {name for contribution in taken for name in contribution.rebuilt}
    # Only a source that goes on shows which columns its readers lack.
    going = [
        contribution for contribution in taken if contribution.source.status is not Status.SUSPENDED
    ]
    barred = {
        name
        for contribution in going
        for name in contribution.complaints.keys() - contribution.rebuilt
    }
    stopped = {
        contribution.source.relation
        for contribution in taken
        if contribution.source.status is Status.SUSPENDED
    }
    whole = {contribution.source.relation for contribution in taken if contribution.copied}
    result = []
    for table in state.stream_tables:
        if table.relation in complaints:
            awaits = table.awaits_rebuild or table.relation in rebuilt
            rebuild = awaits and table.relation not in barred
            result.append(table.suspended(complaints[table.relation], awaits_rebuild=rebuild))
        elif table.held or is_stale(table) or table.status is not Status.SUSPENDED:
            continue
        elif _freed(state, table, whole, stopped):
            result.append(replace(table, status=Status.ACTIVE, reason=None, awaits_rebuild=False))
    return tuple(result)


def _freed(state: State, table: StreamTable, whole: set[str], stopped: set[str]) -> bool:
    """Return whether the sources that had stopped the table are all whole again."""
    had_stopped = {
        source.relation
        for source in state.sources
        if source.relation in table.inputs and source.status is Status.SUSPENDED
    }
    return bool(had_stopped) and had_stopped <= whole and not stopped & set(table.inputs)
