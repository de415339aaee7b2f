"""Reading a slot without consuming it: the same changes again until the slot is advanced.

Functions that read and consume at once are never used: they consume even if the reader fails. A
peek makes the server decode everything first, spilling to its disk, and releases the slot before
the server sends the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from psycopg import Connection, errors, sql

from headrace.capture.wal.protocol import BEGIN, COMMIT, end_of, xid_of
from headrace.capture.wal.slot import (
    ATTEMPTS,
    advance,
    lsn_to_text,
    slot_fault,
    slot_faults,
    with_retries,
)
from headrace.capture.wal.visibility import Committed
from headrace.errors import Transient
from headrace.source.connection import Database

PEEK = sql.SQL("""
SELECT (lsn - '0/0')::bigint AS lsn, data
FROM pg_logical_slot_peek_binary_changes({slot}, {upto}, {limit},
    'proto_version', '1', 'publication_names', {publication})""")

# Only begins and commits are sent: the server decodes as much, but sends little.
TRANSACTIONS = sql.SQL("SELECT data FROM ({}) AS p WHERE get_byte(data, 0) IN ({}, {})")


def peek(database: Database, slot: str, publication: str, upto: int) -> Iterator[pa.RecordBatch]:
    """Yield all messages of the slot up to a position on disk, some megabytes at a time.

    Columns are `lsn` (int64) and `data` (binary). A transaction that ends right after `upto` may
    be among them. Raises `slot-lost`, and `slot-busy` while another client reads the slot.
    """
    query = _query(slot, publication, upto)
    for last in (*(False,) * ATTEMPTS, True):
        begun = False
        try:
            for batch in database.arrow_batches(query):
                begun = True
                yield batch
            return
        except Transient:
            # Arrow passes no SQLSTATE on: the same query through psycopg raises with it.
            with database.session() as connection, slot_faults():
                with_retries(
                    lambda: connection.execute(
                        sql.SQL("SELECT FROM ({}) AS p LIMIT 1").format(query)
                    )
                )
            if begun or last:
                raise


def peek_transactions(
    connection: Connection[Any], slot: str, publication: str, upto: int, limit: int | None = None
) -> tuple[Committed, ...]:
    """Return the transactions of `peek`, in its order; with `limit` 1 only the first.

    Transactions without a change of a published table are left out.
    """
    query = TRANSACTIONS.format(
        _query(slot, publication, upto, limit), sql.Literal(BEGIN), sql.Literal(COMMIT)
    )
    with slot_faults():
        messages = [message for (message,) in with_retries(lambda: connection.execute(query))]
    begins, commits = messages[::2], messages[1::2]
    return tuple(
        Committed(xid_of(begin), end_of(commit))
        for begin, commit in zip(begins, commits, strict=True)
    )


def _query(slot: str, publication: str, upto: int, limit: int | None = None) -> sql.Composed:
    # The names are a list to PostgreSQL: quoted as identifiers, then as a text.
    names = sql.Literal(sql.Identifier(publication).as_string())
    return PEEK.format(
        slot=sql.Literal(slot),
        upto=sql.Literal(lsn_to_text(upto)),
        limit=sql.Literal(limit),
        publication=names,
    )


class SlotReader(Protocol):
    """Reads the changes that are not acknowledged, in the order of commits.

    Positions in arguments must be on disk. All methods raise `slot-lost`, and `slot-busy` while
    another client reads the slot.
    """

    def received(self) -> int | None:
        """Return the position up to which changes were received; None if they are not streamed."""

    def transactions(self, upto: int, limit: int | None = None) -> tuple[Committed, ...]:
        """Return transactions whose commit begins before a position; with `limit` 1 the first.

        Transactions without a change of a published table are left out.
        """

    def messages(self, upto: int) -> Iterator[pa.Array]:
        """Yield the messages of these transactions in batches, perhaps also of a later one."""

    def acknowledge(self, position: int) -> None:
        """Release changes before a position, which must be recorded and not needed any more."""


@dataclass(frozen=True)
class PeekingReader:
    """Reads by peeks: the server decodes at each call; nothing is held between two calls."""

    database: Database
    slot: str
    publication: str

    def received(self) -> None:
        return None

    def transactions(self, upto: int, limit: int | None = None) -> tuple[Committed, ...]:
        with self.database.session() as connection:
            return peek_transactions(connection, self.slot, self.publication, upto, limit)

    def messages(self, upto: int) -> Iterator[pa.Array]:
        for batch in peek(self.database, self.slot, self.publication, upto):
            yield batch.column("data")

    def acknowledge(self, position: int) -> None:
        advance(self.database, self.slot, position)


COPY = "SELECT pg_copy_logical_replication_slot(%s, %s, true)"


@dataclass(frozen=True)
class CopyReader(PeekingReader):
    """Reads transactions through a temporary copy of a slot that another process reads.

    The copy changes nothing and ends with its session. If the server has no free slot, the call
    waits for the original.
    """

    def transactions(self, upto: int, limit: int | None = None) -> tuple[Committed, ...]:
        with self.database.connect() as connection:
            name = f"{self.slot}_{connection.info.backend_pid}"
            try:
                connection.execute(COPY, (self.slot, name))
            except errors.ConfigurationLimitExceeded:
                return super().transactions(upto, limit)
            except errors.Error as error:
                raise slot_fault(error) from error
            return peek_transactions(connection, name, self.publication, upto, limit)
