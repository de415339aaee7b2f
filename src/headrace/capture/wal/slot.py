"""SLOT"""

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


def from_text(text: str) -> int:
    """The number of a position that PostgreSQL wrote."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def to_text(position: int) -> str:
    """A position as PostgreSQL reads and writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


PLUGIN = "pgoutput"
CREATE_SECONDS = 30
# Reading takes moments, unless there is much to read.
ATTEMPTS = 40
PAUSE_SECONDS = 0.05

R = TypeVar("R")

# What only newer versions have is NULL in older ones.
STATUS = """
SELECT s.plugin, s.database, s.active_pid,
    (s.restart_lsn - '0/0')::bigint, (s.confirmed_flush_lsn - '0/0')::bigint, s.wal_status,
    (pg_current_wal_insert_lsn() - s.restart_lsn)::bigint, s.safe_wal_size,
    to_jsonb(s) ->> 'invalidation_reason',
    current_setting('max_slot_wal_keep_size') <> '-1'
        OR coalesce(current_setting('idle_replication_slot_timeout', true), '0') <> '0'
FROM pg_replication_slots s WHERE s.slot_name = %s
"""

# SQLSTATEs by which PostgreSQL says that a slot, or what it needs, is not there any more.
LOST = frozenset({"0A000", "42704", "55000", "58P01"})


@dataclass(frozen=True)
class SlotStatus:
    """A slot as the server has it now; it takes no part in snapshots.

    Before `confirmed` nothing is handed out any more. `lag` is how much of the log the slot keeps
    from being removed, `safe` how much more it may before the server invalidates it, if ever.
    `bounded`: the server would by itself, however long nobody reads the slot.
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
        """Whether the server has given up what the slot needs."""
        return self.wal_status == "lost" or self.invalidated is not None or self.restart is None


def read_status(connection: Connection[Any], slot: str) -> SlotStatus | None:
    """Where the slot stands; None if there is none of that name."""
    with translated():
        found = connection.execute(STATUS, (slot,)).fetchone()
    return None if found is None else SlotStatus(*found)


def create(database: Database, slot: str, *, seconds: int = CREATE_SECONDS) -> int:
    """Make the slot, after the publication, and return the position from which it hands out.

    PostgreSQL waits for all transactions that are open now, also prepared ones, and in all
    databases; after `seconds` that is `source-locked`, and nothing is left behind.
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
                "the replication slot could not be made while older transactions are open",
                hint="Look for old transactions in pg_stat_activity and pg_prepared_xacts.",
            ) from error
        except (errors.ConfigurationLimitExceeded, errors.DuplicateObject) as error:
            raise UserError(
                "capture-not-set-up",
                f"replication slot {slot} could not be made",
                detail=error.diag.message_primary,
                hint=error.diag.message_hint,
            ) from error
        except errors.Error as error:
            raise translate(error) from error
    assert row is not None
    return from_text(row[0])


def advance(database: Database, slot: str, upto: int) -> int:
    """Let go of what is before `upto`, and return the slot's position.

    What it hands out from there on must not be needed again. Being there already is no fault.
    Raises `slot-lost`, and `slot-busy` while someone else reads the slot.
    """

    def move() -> int:
        status = read_status(connection, slot)
        if status is not None and status.confirmed is not None and status.confirmed >= upto:
            return status.confirmed
        row = connection.execute(
            "SELECT end_lsn::text FROM pg_replication_slot_advance(%s, %s)", (slot, to_text(upto))
        ).fetchone()
        assert row is not None
        return from_text(row[0])

    with database.connect() as connection, slot_faults():
        return patiently(move)


def slot_busy(slot: str, status: SlotStatus, detail: str | None = None) -> Transient:
    """The error of a slot that another program reads."""
    hint = f"Another program reads it: SELECT pg_terminate_backend({status.active_pid});"
    return Transient(
        "slot-busy",
        f"replication slot {slot} is in use",
        detail=detail,
        hint=hint if status.active_pid else None,
    )


def drop(database: Database, slot: str) -> bool:
    """Drop the slot; False if there is none. `slot-busy` while someone else reads it."""
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


def patiently(use: Callable[[], R]) -> R:
    """Use the slot, again after a moment while another process of ours does."""
    for _ in range(ATTEMPTS):
        try:
            return use()
        except errors.ObjectInUse:
            time.sleep(PAUSE_SECONDS)
    return use()


@contextmanager
def slot_faults() -> Iterator[None]:
    """Raise what PostgreSQL complains about while the slot is used, lost ones as `slot-lost`."""
    try:
        yield
    except errors.Error as error:
        raise slot_fault(error) from error


def slot_fault(error: errors.Error) -> HeadraceError:
    """The error for what PostgreSQL said about the slot or its publication."""
    if isinstance(error, errors.ObjectInUse):
        return Transient("slot-busy", error.diag.message_primary or str(error))
    if error.sqlstate not in LOST:
        return translate(error)
    return NeedsReinit(
        "slot-lost",
        error.diag.message_primary or str(error),
        detail=error.diag.message_detail,
        hint="The sources are captured by triggers again, and copied anew.",
    )


END = """
SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint,
    pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn()
"""


def end_on_disk(database: Database) -> int:
    """The end of the last record written; all that is before it is on disk when this returns."""
    with database.session() as connection, translated():
        row = connection.execute(END).fetchone()
    assert row is not None
    position, flushed = row
    if not flushed:
        flush(database)
    return int(position)
