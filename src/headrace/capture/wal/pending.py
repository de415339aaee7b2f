"""Pending changes of a slot between cuts, and advancing a slot without pending changes.

While nothing is written on the server, a probe costs one round trip that reads no data. After a
write, unless the WAL is streamed, the server decodes from the slot's restart position: about 0.1 s
for 50 MB, again at each probe, and a long open transaction holds that position back. So results
carry their cost, and `pause` returns the time to wait before the next probe.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from headrace.capture.snapshot import Snapshot
from headrace.capture.wal.slot import end_on_disk, read_status
from headrace.capture.wal.slot_reader import SlotReader
from headrace.capture.wal.visibility import Committed, released, widened
from headrace.errors import NeedsReinit
from headrace.source.connection import Database
from headrace.source.faults import translated

# Probes may take a tenth of the time, and run at least every so many seconds.
SHARE = 10.0
LONGEST_PAUSE = 30.0
# A slot this far behind advances although no source changed: one WAL segment file.
IDLE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class SlotChanges:
    """Whether a cut would find changes; up to `quiet` the WAL has none that no cut has taken."""

    pending: bool
    quiet: int
    seconds: float = 0.0


def pause(seconds: float) -> float:
    """Return how long to wait after a probe that took so long (pure)."""
    return min(SHARE * seconds, LONGEST_PAUSE)


def probe_changes(
    connection: Connection[Any],
    reader: SlotReader,
    snapshot: str,
    quiet: int,
    upto: int | None = None,
) -> SlotChanges:
    """Return whether the slot has transactions since the last cut.

    `quiet` is that of the previous result, or 0; `upto` defaults to all WAL on disk. A lost slot
    also counts as pending changes: the next cut handles it.
    """
    flushed = _flushed(connection) if upto is None else upto
    if flushed <= quiet:
        return SlotChanges(False, quiet)
    last = Snapshot.read(snapshot)
    started = time.monotonic()
    try:
        # The first transaction usually decides, and saves decoding those after it.
        first = reader.transactions(flushed, 1)
        unseen = _unseen(first, last)
        pending = _sees_any(connection, unseen)
        if first and not pending:
            unseen = _unseen(reader.transactions(flushed), last)
            pending = _sees_any(connection, unseen)
    except NeedsReinit:
        return SlotChanges(True, quiet, time.monotonic() - started)
    # A commit may be on disk a moment before it is visible: the next probe has to look again.
    return SlotChanges(pending, quiet if unseen else flushed, time.monotonic() - started)


def advance_idle(
    database: Database,
    slot: str,
    reader: SlotReader,
    snapshot: str,
    record: Callable[[int], None],
    *,
    idle_bytes: int = IDLE_BYTES,
) -> int | None:
    """Advance a slot that retains WAL without need; return its new position, None if it stays.

    `snapshot` is that of the last durable cut: transactions that it sees may be released. `record`
    is called with the new position before the slot advances: the record must never be behind it.
    """
    with database.session() as connection:
        status = read_status(connection, slot)
        if status is None or status.lost or status.confirmed is None:
            return None
        flushed = _flushed(connection)
    if flushed - status.confirmed < idle_bytes:
        return None
    # WAL is flushed by pages: the slot must not advance into the middle of a commit.
    upto = end_on_disk(database)
    position = released(reader.transactions(upto), Snapshot.read(snapshot), upto)
    if position is None or position <= status.confirmed:
        return None
    record(position)
    reader.acknowledge(position)
    return position


def _flushed(connection: Connection[Any]) -> int:
    with translated():
        row = connection.execute("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint").fetchone()
    assert row is not None
    return int(row[0])


def _unseen(transactions: tuple[Committed, ...], last: Snapshot) -> tuple[int, ...]:
    """Return the 64-bit ids of the transactions that the last cut did not see."""
    wide = (widened(transaction.xid, last) for transaction in transactions)
    return tuple(xid for xid in wide if not last.sees(xid))


def _sees_any(connection: Connection[Any], xids: tuple[int, ...]) -> bool:
    if not xids:
        return False
    with translated():
        row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
    assert row is not None
    now = Snapshot.read(row[0])
    return any(map(now.sees, xids))
