"""The replication slot: creating, reading its state, advancing and dropping it; WAL positions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg import Connection, errors

from headrace.capture.cut import flush
from headrace.errors import HeadraceError, NeedsReinit, Transient, UserError
from headrace.source.connection import Database
from headrace.source.faults import translate, translated


def lsn_from_text(text: str) -> int:
    """Return the number of a position such as `16/B374D848`."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_to_text(position: int) -> str:
    """Return a position as PostgreSQL writes it, such as `16/B374D848`."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


PLUGIN = "pgoutput"
CREATE_SECONDS = 30
# Another reader usually needs the slot only for a moment.
ATTEMPTS = 40
PAUSE_SECONDS = 0.05

R = TypeVar("R")

# Columns that only newer versions have are NULL in older ones.
STATUS = """
SELECT s.plugin, s.database, s.active_pid,
    (s.restart_lsn - '0/0')::bigint, (s.confirmed_flush_lsn - '0/0')::bigint, s.wal_status,
    (pg_current_wal_insert_lsn() - s.restart_lsn)::bigint, s.safe_wal_size,
    to_jsonb(s) ->> 'invalidation_reason',
    current_setting('max_slot_wal_keep_size') <> '-1'
        OR coalesce(current_setting('idle_replication_slot_timeout', true), '0') <> '0'
FROM pg_replication_slots s WHERE s.slot_name = %s
"""

# SQLSTATEs of a slot that no longer exists, or lacks what it needs.
LOST = frozenset({"0A000", "42704", "55000", "58P01"})


@dataclass(frozen=True)
class SlotStatus:
    """The current state of a slot, whatever the snapshot of the transaction.

    Nothing before `confirmed` is sent again. `lag` is how many bytes of WAL the slot retains,
    `safe` how many more it may before the server invalidates it, if ever. `bounded`: the server
    limits what an unread slot retains.
    """

    plugin: str | None
    database: str | None
    active_pid: int | None
    restart: int | None
    confirmed: int | None
    wal_status: str | None
    lag: int | None
    safe: int | None
    invalidated: str | None
    bounded: bool = True

    @property
    def lost(self) -> bool:
        """Return whether the server has invalidated the slot or removed WAL that it needs."""
        return self.wal_status == "lost" or self.invalidated is not None or self.restart is None


def read_status(connection: Connection[Any], slot: str) -> SlotStatus | None:
    """Return the state of the slot; None if there is none of that name."""
    with translated():
        row = connection.execute(STATUS, (slot,)).fetchone()
    return None if row is None else SlotStatus(*row)


def create(database: Database, slot: str, *, seconds: int = CREATE_SECONDS) -> int:
    """Create the slot, after the publication, and return the position from which it sends changes.

    PostgreSQL waits for all open transactions of all databases, prepared ones too; after `seconds`
    the wait fails with `source-locked` and leaves nothing behind.
    """
    with database.connect() as connection:
        connection.execute("SET lock_timeout = 0")
        connection.execute("SELECT set_config('statement_timeout', %s, false)", (f"{seconds}s",))
        query = "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, %s)"
        try:
            row = connection.execute(query, (slot, PLUGIN)).fetchone()
        except errors.QueryCanceled as error:
            raise Transient(
                "source-locked",
                f"could not create replication slot {slot} while older transactions are open",
                hint="Look for old transactions in pg_stat_activity and pg_prepared_xacts.",
            ) from error
        except (errors.ConfigurationLimitExceeded, errors.DuplicateObject) as error:
            raise UserError(
                "capture-not-set-up",
                f"could not create replication slot {slot}",
                detail=error.diag.message_primary,
                hint=error.diag.message_hint,
            ) from error
        except errors.Error as error:
            raise translate(error) from error
    assert row is not None
    return lsn_from_text(row[0])


def advance(database: Database, slot: str, upto: int) -> int:
    """Release the WAL before `upto` and return the slot's position.

    Changes before that position must not be needed again. A slot that is there already stays.
    Raises `slot-lost`, and `slot-busy` while another client reads the slot.
    """

    def move() -> int:
        status = read_status(connection, slot)
        if status is not None and status.confirmed is not None and status.confirmed >= upto:
            return status.confirmed
        row = connection.execute(
            "SELECT end_lsn::text FROM pg_replication_slot_advance(%s, %s)",
            (slot, lsn_to_text(upto)),
        ).fetchone()
        assert row is not None
        return lsn_from_text(row[0])

    with database.connect() as connection, slot_faults():
        return with_retries(move)


def slot_busy(slot: str, status: SlotStatus, detail: str | None = None) -> Transient:
    """Return the error for a slot that another program reads."""
    hint = f"To end the other session: SELECT pg_terminate_backend({status.active_pid});"
    return Transient(
        "slot-busy",
        f"replication slot {slot} is in use",
        detail=detail,
        hint=hint if status.active_pid else None,
    )


def drop(database: Database, slot: str) -> bool:
    """Drop the slot; return False if there is none. Raises `slot-busy` while it is being read."""
    with database.connect() as connection:
        status = read_status(connection, slot)
        if status is None:
            return False
        try:
            connection.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
        except errors.UndefinedObject:
            return False
        except errors.ObjectInUse as error:
            raise slot_busy(slot, status, error.diag.message_primary) from error
        except errors.Error as error:
            raise translate(error) from error
    return True


def with_retries(use: Callable[[], R]) -> R:
    """Call `use`, again after a moment while another process of ours uses the slot."""
    for _ in range(ATTEMPTS):
        try:
            return use()
        except errors.ObjectInUse:
            time.sleep(PAUSE_SECONDS)
    return use()


@contextmanager
def slot_faults() -> Iterator[None]:
    """Raise errors of PostgreSQL as HeadraceErrors, those of a lost slot as `slot-lost`."""
    try:
        yield
    except errors.Error as error:
        raise slot_fault(error) from error


def slot_fault(error: errors.Error) -> HeadraceError:
    """Return the HeadraceError for an error with the slot or its publication."""
    if isinstance(error, errors.ObjectInUse):
        return Transient("slot-busy", error.diag.message_primary or str(error))
    if error.sqlstate not in LOST:
        return translate(error)
    return NeedsReinit(
        "slot-lost",
        error.diag.message_primary or str(error),
        detail=error.diag.message_detail,
        hint="The sources are captured by triggers again, and copied again.",
    )


END = """
SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint,
    pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn()
"""


def end_on_disk(database: Database) -> int:
    """Return the end of the last WAL record, after everything before it is on disk."""
    with database.session() as connection, translated():
        row = connection.execute(END).fetchone()
    assert row is not None
    position, flushed = row
    if not flushed:
        flush(database)
    return int(position)
