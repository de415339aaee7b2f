"""The sources of a database that are read from its log: whether they can be, and what it says."""

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

# What makes a reading of the log useless, for one source or for all.
BROKEN = frozenset({"slot-lost", "wal-not-decodable"})
# Changes by key are put together in memory, with the rows before: larger ones are a copy.
KEYED_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Leaving:
    """Sources, by oid, that cannot be followed any more: of those read from the log, and of those
    on the way there; and those on the way that may go on with the log."""

    leaving: Mapping[int, str] = field(default_factory=dict)
    stuck: Mapping[int, str] = field(default_factory=dict)
    ready: frozenset[int] = frozenset()


@dataclass(frozen=True)
class LogChanges:
    """What the log says for one cut.

    `changes` gives the weighted rows of a source, by oid; `refused` those that cannot be stored.
    `too_large` are sources that a copy serves better, `leaving` those that it cannot be read for.
    """

    changes: Mapping[int, Callable[[], Iterator[pa.Table]]] = field(default_factory=dict)
    refused: Mapping[int, HeadraceError] = field(default_factory=dict)
    released: int | None = None
    too_large: frozenset[int] = frozenset()
    leaving: Mapping[int, str] = field(default_factory=dict)

    def rows(self, oid: int) -> Iterator[pa.Table]:
        """The changes of a source, some megabytes at a time."""
        if oid in self.refused:
            raise self.refused[oid]
        yield from self.changes[oid]() if oid in self.changes else ()


NO_LOG = LogChanges()


def followed_of(sources: Sequence[Source], fallen: Mapping[int, str]) -> frozenset[int]:
    """Those that are read from the log, by oid."""
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
    by_log = followed_of(sources, fallen)
    if following is None:
        reasons = dict.fromkeys(followed, "nothing is recorded of its slot")
    else:
        found = probe_slot_in(cut, following, sources)
        reasons = found.reasons(following, followed, slot_ceiling(settings))
    for source in sources:
        if source.oid in followed and _lost_key(source, cut.tables.get(source.oid)):
            reasons.setdefault(source.oid, "a column of its key is not what it was")
        if source.oid in by_log and source.oid not in (cut.announced or {}):
            reasons.setdefault(source.oid, UNKNOWN)
    return Leaving(
        {oid: reason for oid, reason in reasons.items() if oid in by_log},
        {oid: reason for oid, reason in reasons.items() if oid not in by_log},
        frozenset(followed.keys() - by_log - reasons.keys()),
    )


def _lost_key(source: Source, table: SourceTable | None) -> bool:
    """Whether old rows cannot be found by their key any more, although the log has it."""
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
) -> Iterator[LogChanges]:
    """What the log has of the sources that are not copied; its files live as long as the `with`."""
    wanted = {
        source.oid: source
        for source in sources
        if source.mode is CaptureMode.WAL and source.oid not in copies
    }
    if not wanted:
        yield NO_LOG
        return
    with temporary_folder(LOG) as folder:
        try:
            log = _read(engine, state, number, cut, wanted, folder)
        except NeedsReinit as error:
            if error.code not in BROKEN:
                raise
            log = LogChanges(leaving=dict.fromkeys(wanted, _public_reason(error)))
        yield log


def _read(
    engine: Engine,
    state: State,
    number: int,
    cut: OpenCut,
    wanted: Mapping[int, Source],
    folder: Path,
) -> LogChanges:
    known = state.database(number)
    assert known.following is not None
    read = read_wal(
        cut,
        log_of(engine, known, known.following),
        {oid: _wanted(source) for oid, source in wanted.items()},
        known.snapshot,
        folder,
    )
    limit = engine.settings(state).collect_rows
    keyed = {oid for oid, source in wanted.items() if _by_key(source)}
    too_large = frozenset(
        oid for oid in keyed if read.rows.get(oid, 0) > limit or read.size(oid) > KEYED_BYTES
    )
    if too_large:
        return LogChanges(too_large=too_large)
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
    return LogChanges(
        changes,
        {oid: error for oid, error in refused.items() if error.code not in BROKEN},
        read.released,
        leaving={
            oid: _public_reason(error) for oid, error in refused.items() if error.code in BROKEN
        },
    )


def _public_reason(error: HeadraceError) -> str:
    """Why the log cannot be read, for everybody: neither part quotes rows."""
    return error.message if error.detail is None else f"{error.message}: {error.detail}"


def _wanted(source: Source) -> WalSource:
    assert source.followed is not None
    table = SourceTable(source.oid, source.schema, source.name, source.columns, source.keys)
    return WalSource(table, source.followed)


def _by_key(source: Source) -> bool:
    return source.followed is not None and source.followed.kind == "key"


def _keyed(engine: Engine, state: State, source: Source, read: WalRead) -> pa.Table:
    """Old rows that the log has only the keys of are those of the source's own relation."""
    one = _wanted(source)
    events = pa.concat_tables(read.batches(source.oid))
    key = [column.physical for column in one.table.stored if column.number in one.followed.key]
    columns = [column.physical for column in one.table.stored]
    return keyed_changes(engine.store, state.relation(source.relation), events, key, columns)


def _kept(rows: pa.Table) -> Callable[[], Iterator[pa.Table]]:
    return lambda: iter((rows,))


def _from_file(read: WalRead, oid: int) -> Callable[[], Iterator[pa.Table]]:
    return lambda: read.batches(oid)


def slot_ceiling(settings: Settings) -> Ceiling:
    """How much of the log a slot may hold back."""
    return Ceiling(
        settings.slot_lag_warning_threshold_mb << 20, settings.slot_lag_critical_threshold_mb << 20
    )


def log_of(engine: Engine, known: DatabaseRecord, following: Following) -> SlotReader:
    """The log of a database that is followed."""
    return engine.slot_readers.of(engine.source_database(known), following.slot)


def log_has_news(
    engine: Engine,
    connection: Connection[Any],
    known: DatabaseRecord,
    sources: Sequence[Source],
    version: int,
    settings: Settings,
) -> bool:
    """Whether a cut would find changes of these in the log, or that it cannot be continued.

    What happens to a table or its publication leaves nothing in the log, so both are looked at.
    Also true where somebody else has the slot and nothing is known.
    """
    following = known.following
    if following is None or known.snapshot is None:
        return True
    followed = {s.oid: s.followed for s in sources if s.followed is not None}
    tables = inspect(connection, followed)
    if any(reason_to_copy_followed(source, tables.get(source.oid)) for source in sources):
        return True
    here = ServerPosition(following.system_identifier, following.timeline, following.acknowledged)
    found = probe_slot(connection, here, following, sources, tables, version)
    if found.reasons(following, followed, slot_ceiling(settings)):
        return True
    log = log_of(engine, known, following)
    if isinstance(log, PeekingReader) and found.status is not None and found.status.active_pid:
        # A daemon streams it, and nobody else can have the slot.
        log = CopyReader(log.database, log.slot, log.publication)
    try:
        return probe_changes(connection, log, known.snapshot, 0).pending
    except Transient as error:
        if error.code != "slot-busy":
            raise
        return True


def advance_quietly(engine: Engine, state: State, number: int, fence: int) -> State:
    """Let a slot go of log that others wrote, if it holds back much of it."""
    known = state.database(number)
    following = known.following
    if following is None or known.snapshot is None or following.acknowledged < 0:
        return state

    def record(position: int) -> None:
        moved = replace(known, following=replace(following, acknowledged=position))
        with engine.step(MoveSlot(following.slot)), engine.changing(state):
            engine.catalog.commit(Change(put=(moved,)), fence=fence)

    database = engine.source_database(known)
    log = log_of(engine, known, following)
    moved = advance_idle(database, following.slot, log, known.snapshot, record)
    return state if moved is None else engine.catalog.state()
