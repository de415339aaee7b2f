"""Two questions between cuts: whether the slot has something new, and whether it may move on.

As long as nothing was written anywhere on the server, the first costs one round trip that reads no
data. After that, where the log is not streamed, the server decodes it from the slot's restart
position: on one machine about 0.1 s for 50 MB, again at each question, and a long open transaction
keeps that position back. So answers say what they cost, and `pause` how long to wait before asking
again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from headrace.capture.snapshot import Snapshot
from headrace.capture.wal.slot import end_on_disk, read_status
from headrace.capture.wal.slot_reader import SlotLog
from headrace.capture.wal.visibility import Committed, released, widened
from headrace.errors import NeedsReinit
from headrace.source.connection import Database
from headrace.source.faults import translated

# Asking may take a tenth of the time, and is done at least every so many seconds.
SHARE = 10.0
LONGEST_PAUSE = 30.0
# A slot this far behind moves on although nothing of ours was changed: one file of the log.
IDLE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class SlotChanges:
    """Whether a cut would find changes; up to `quiet` the log has none that are still to come."""

    found: bool
    quiet: int
    seconds: float = 0.0


def pause(seconds: float) -> float:
    """How long to wait after an answer that took so long (pure)."""
    return min(SHARE * seconds, LONGEST_PAUSE)


def look(
    connection: Connection[Any], log: SlotLog, snapshot: str, quiet: int, upto: int | None = None
) -> SlotChanges:
    """Ask for transactions since the last cut; `quiet` is that of the answer before, or 0.

    They are asked for up to a position, unless told all that is on disk. The answer is also true
    where the slot is lost, which a cut finds out about.
    """
    flushed = _flushed(connection) if upto is None else upto
    if flushed <= quiet:
        return SlotChanges(False, quiet)
    last = Snapshot.read(snapshot)
    started = time.monotonic()
    try:
        # The first one decides in most cases, and spares decoding those after it.
        first = log.transactions(flushed, 1)
        unseen = _unseen(first, last)
        found = _sees_any(connection, unseen)
        if first and not found:
            unseen = _unseen(log.transactions(flushed), last)
            found = _sees_any(connection, unseen)
    except NeedsReinit:
        return SlotChanges(True, quiet, time.monotonic() - started)
    # A commit may be on disk a moment before anybody sees it: then the question stays open.
    return SlotChanges(found, quiet if unseen else flushed, time.monotonic() - started)


def advance_idle(
    database: Database,
    slot: str,
    log: SlotLog,
    snapshot: str,
    record: Callable[[int], None],
    *,
    idle_bytes: int = IDLE_BYTES,
) -> int | None:
    """Move a slot on that holds back log without need; None if it holds little, or needs it.

    `snapshot` is of the last durable cut, so all that it sees may go. `record` is called with the
    new position before the slot moves: what is recorded must never be behind the slot.
    """
    with database.session() as connection:
        status = read_status(connection, slot)
        if status is None or status.lost or status.confirmed is None:
            return None
        flushed = _flushed(connection)
    if flushed - status.confirmed < idle_bytes:
        return None
    # The log is flushed by pages: the slot must not come to stand where a commit goes on.
    upto = end_on_disk(database)
    position = released(log.transactions(upto), Snapshot.read(snapshot), upto)
    if position is None or position <= status.confirmed:
        return None
    record(position)
    log.acknowledge(position)
    return position


def _flushed(connection: Connection[Any]) -> int:
    with translated():
        row = connection.execute("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint").fetchone()
    assert row is not None
    return int(row[0])


def _unseen(transactions: tuple[Committed, ...], last: Snapshot) -> tuple[int, ...]:
    """The 64-bit ids of those that the last cut did not have."""
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
