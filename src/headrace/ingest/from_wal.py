"""The sources of a database that are read from its WAL: whether they can be, and their changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from psycopg import Connection

from headrace.capture.announced import UNKNOWN
from headrace.capture.cut import OpenCut
from headrace.capture.recopy_reasons import captured_part, reason_to_copy_followed
from headrace.capture.wal.following import Following
from headrace.capture.wal.pending import advance_idle, probe_changes
from headrace.capture.wal.read import WalRead, WalSource, read_wal
from headrace.capture.wal.slot_probe import Ceiling, ServerPosition, probe_slot, probe_slot_in
from headrace.capture.wal.slot_reader import CopyReader, PeekingReader, SlotReader
from headrace.catalog import Change, State
from headrace.catalog.records import CaptureMode, DatabaseRecord, Source
from headrace.engine import Engine
from headrace.engine.steps import MoveSlot
from headrace.errors import HeadraceError, NeedsReinit, Transient
from headrace.files.temporary import LOG, temporary_folder
from headrace.ingest.keyed import keyed_changes
from headrace.settings import Settings
from headrace.source.introspect import inspect
from headrace.source.table import SourceTable

# Errors that make a read of the WAL useless, for one source or for all.
BROKEN = frozenset({"slot-lost", "wal-not-decodable"})
# Changes by key are computed in memory, with the rows before: of larger ones the source is copied.
KEYED_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Leaving:
    """Sources, by oid, that cannot be followed any more: `leaving` of those read from the WAL,
    `stuck` of those in transition to it; and those in transition that are `ready` to complete it.
    """

    leaving: Mapping[int, str] = field(default_factory=dict)
    stuck: Mapping[int, str] = field(default_factory=dict)
    ready: frozenset[int] = frozenset()


@dataclass(frozen=True)
class WalChanges:
    """The changes in the WAL for one cut.

    `changes` gives the weighted rows of a source, by oid; `refused` those that cannot be stored.
    `too_large` are sources that a copy serves better, `leaving` those whose changes cannot be read.
    """

    changes: Mapping[int, Callable[[], Iterator[pa.Table]]] = field(default_factory=dict)
    refused: Mapping[int, HeadraceError] = field(default_factory=dict)
    released: int | None = None
    too_large: frozenset[int] = frozenset()
    leaving: Mapping[int, str] = field(default_factory=dict)

    def rows(self, oid: int) -> Iterator[pa.Table]:
        """Yield the changes of a source, some megabytes at a time."""
        if oid in self.refused:
            raise self.refused[oid]
        yield from self.changes[oid]() if oid in self.changes else ()


NO_WAL_CHANGES = WalChanges()


def followed_of(sources: Sequence[Source], fallen: Mapping[int, str]) -> frozenset[int]:
    """Return the sources that are read from the WAL, by oid."""
    return frozenset(
        source.oid
        for source in sources
        if source.mode is CaptureMode.WAL and source.oid not in fallen
    )


def leaving(
    state: State,
    number: int,
    cut: OpenCut,
    sources: Sequence[Source],
    fallen: Mapping[int, str],
    settings: Settings,
) -> Leaving:
    """Compare what is recorded of slot, publication and identities with what the cut finds."""
    followed = {
        source.oid: source.followed
        for source in sources
        if source.followed is not None and source.oid not in fallen
    }
    following = state.database(number).following
    if not followed:
        return Leaving()
    by_wal = followed_of(sources, fallen)
    if following is None:
        reasons = dict.fromkeys(followed, "nothing is recorded of its slot")
    else:
        slot_state = probe_slot_in(cut, following, sources)
        reasons = slot_state.reasons(following, followed, slot_ceiling(settings))
    for source in sources:
        if source.oid in followed and _lost_key(source, cut.tables.get(source.oid)):
            reasons.setdefault(source.oid, "a column of its key is not what it was")
        if source.oid in by_wal and source.oid not in (cut.announced or {}):
            reasons.setdefault(source.oid, UNKNOWN)
    return Leaving(
        {oid: reason for oid, reason in reasons.items() if oid in by_wal},
        {oid: reason for oid, reason in reasons.items() if oid not in by_wal},
        frozenset(followed.keys() - by_wal - reasons.keys()),
    )


def _lost_key(source: Source, table: SourceTable | None) -> bool:
    """Return whether old rows cannot be found by their key any more, although the WAL has it."""
    if table is None or source.followed is None:
        return False
    captured = {column.number for column in captured_part(source, table).stored}
    return not captured.issuperset(source.followed.key)


@contextmanager
def read_changes(
    engine: Engine,
    state: State,
    number: int,
    cut: OpenCut,
    sources: Sequence[Source],
    copies: frozenset[int],
) -> Iterator[WalChanges]:
    """Yield the changes in the WAL of sources that are not copied; files are removed afterwards."""
    wal_sources = {
        source.oid: source
        for source in sources
        if source.mode is CaptureMode.WAL and source.oid not in copies
    }
    if not wal_sources:
        yield NO_WAL_CHANGES
        return
    with temporary_folder(LOG) as folder:
        try:
            wal_changes = _read(engine, state, number, cut, wal_sources, folder)
        except NeedsReinit as error:
            if error.code not in BROKEN:
                raise
            wal_changes = WalChanges(leaving=dict.fromkeys(wal_sources, _public_reason(error)))
        yield wal_changes


def _read(
    engine: Engine,
    state: State,
    number: int,
    cut: OpenCut,
    wanted: Mapping[int, Source],
    folder: Path,
) -> WalChanges:
    database = state.database(number)
    assert database.following is not None
    read = read_wal(
        cut,
        slot_reader_of(engine, database, database.following),
        {oid: _wanted(source) for oid, source in wanted.items()},
        database.snapshot,
        folder,
    )
    limit = engine.settings(state).collect_rows
    keyed = {oid for oid, source in wanted.items() if _by_key(source)}
    too_large = frozenset(
        oid for oid in keyed if read.rows.get(oid, 0) > limit or read.size(oid) > KEYED_BYTES
    )
    if too_large:
        return WalChanges(too_large=too_large)
    changes: dict[int, Callable[[], Iterator[pa.Table]]] = {}
    refused = dict(read.refused)
    for oid, source in wanted.items():
        if oid not in read.rows or oid in refused:
            continue
        if oid not in keyed:
            changes[oid] = _from_file(read, oid)
            continue
        try:
            changes[oid] = _kept(_keyed(engine, state, source, read))
        except NeedsReinit as error:
            refused[oid] = error
    return WalChanges(
        changes,
        {oid: error for oid, error in refused.items() if error.code not in BROKEN},
        read.released,
        leaving={
            oid: _public_reason(error) for oid, error in refused.items() if error.code in BROKEN
        },
    )


def _public_reason(error: HeadraceError) -> str:
    """Return why the WAL cannot be read, for any reader: neither part quotes rows."""
    return error.message if error.detail is None else f"{error.message}: {error.detail}"


def _wanted(source: Source) -> WalSource:
    assert source.followed is not None
    table = SourceTable(source.oid, source.schema, source.name, source.columns, source.keys)
    return WalSource(table, source.followed)


def _by_key(source: Source) -> bool:
    return source.followed is not None and source.followed.kind == "key"


def _keyed(engine: Engine, state: State, source: Source, read: WalRead) -> pa.Table:
    """Return the changes of a source of whose old rows the WAL has only the keys.

    The old rows are taken from the source's own relation.
    """
    wal_source = _wanted(source)
    events = pa.concat_tables(read.batches(source.oid))
    key = [
        column.physical
        for column in wal_source.table.stored
        if column.number in wal_source.followed.key
    ]
    columns = [column.physical for column in wal_source.table.stored]
    return keyed_changes(engine.store, state.relation(source.relation), events, key, columns)


def _kept(rows: pa.Table) -> Callable[[], Iterator[pa.Table]]:
    return lambda: iter((rows,))


def _from_file(read: WalRead, oid: int) -> Callable[[], Iterator[pa.Table]]:
    return lambda: read.batches(oid)


def slot_ceiling(settings: Settings) -> Ceiling:
    """Return how much of the WAL a slot may retain."""
    return Ceiling(
        settings.slot_lag_warning_threshold_mb << 20, settings.slot_lag_critical_threshold_mb << 20
    )


def slot_reader_of(engine: Engine, known: DatabaseRecord, following: Following) -> SlotReader:
    """Return the reader of the WAL of a database that is followed."""
    return engine.slot_readers.of(engine.source_database(known), following.slot)


def wal_has_changes(
    engine: Engine,
    connection: Connection[Any],
    known: DatabaseRecord,
    sources: Sequence[Source],
    version: int,
    settings: Settings,
) -> bool:
    """Return whether a cut would find changes of these sources in the WAL, or cannot continue it.

    A change of a table or its publication leaves nothing in the WAL, so both are examined. Also
    true where another process has the slot and nothing is known.
    """
    following = known.following
    if following is None or known.snapshot is None:
        return True
    followed = {s.oid: s.followed for s in sources if s.followed is not None}
    tables = inspect(connection, followed)
    if any(reason_to_copy_followed(source, tables.get(source.oid)) for source in sources):
        return True
    position = ServerPosition(
        following.system_identifier, following.timeline, following.acknowledged
    )
    slot_state = probe_slot(connection, position, following, sources, tables, version)
    if slot_state.reasons(following, followed, slot_ceiling(settings)):
        return True
    slot_reader = slot_reader_of(engine, known, following)
    if (
        isinstance(slot_reader, PeekingReader)
        and slot_state.status is not None
        and slot_state.status.active_pid
    ):
        # A daemon streams from the slot, which no other process can use meanwhile.
        slot_reader = CopyReader(slot_reader.database, slot_reader.slot, slot_reader.publication)
    try:
        return probe_changes(connection, slot_reader, known.snapshot, 0).pending
    except Transient as error:
        if error.code != "slot-busy":
            raise
        return True


def advance_quietly(engine: Engine, state: State, number: int, fence: int) -> State:
    """Advance a slot past WAL that others wrote, if it retains much of it; return the state."""
    database_record = state.database(number)
    following = database_record.following
    if following is None or database_record.snapshot is None or following.acknowledged < 0:
        return state

    def record(position: int) -> None:
        moved = replace(database_record, following=replace(following, acknowledged=position))
        with engine.step(MoveSlot(following.slot)), engine.changing(state):
            engine.catalog.commit(Change(put=(moved,)), fence=fence)

    database = engine.source_database(database_record)
    slot_reader = slot_reader_of(engine, database_record, following)
    moved = advance_idle(database, following.slot, slot_reader, database_record.snapshot, record)
    return state if moved is None else engine.catalog.state()
