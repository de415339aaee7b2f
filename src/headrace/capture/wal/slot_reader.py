"""READER"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from psycopg import Connection, errors, sql

from headrace.capture.wal.protocol import BEGIN, COMMIT, end_of, xid_of
from headrace.capture.wal.slot import ATTEMPTS, advance, patiently, slot_fault, slot_faults, to_text
from headrace.capture.wal.visibility import Committed
from headrace.errors import Transient
from headrace.source.connection import Database

PEEK = sql.SQL("""
SELECT (lsn - '0/0')::bigint AS lsn, data
FROM pg_logical_slot_peek_binary_changes({slot}, {upto}, {limit},
    'proto_version', '1', 'publication_names', {publication})""")

# Only what begins and ends transactions is sent: the server decodes as much, but sends little.
TRANSACTIONS = sql.SQL("SELECT data FROM ({}) AS p WHERE get_byte(data, 0) IN ({}, {})")


def peek(database: Database, slot: str, publication: str, upto: int) -> Iterator[pa.RecordBatch]:
    """All messages of the slot up to a position that is on disk, some megabytes at a time.

    Columns are `lsn` (int64) and `data` (binary). A transaction that ends right after `upto` may
    be among them. Raises `slot-lost`, and `slot-busy` while someone else reads the slot.
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
            # Arrow passes no SQLSTATE on. Asking once more by other means brings it to light.
            with database.session() as connection, slot_faults():
                patiently(
                    lambda: connection.execute(
                        sql.SQL("SELECT FROM ({}) AS p LIMIT 1").format(query)
                    )
                )
            if begun or last:
                raise


def peek_transactions(
    connection: Connection[Any], slot: str, publication: str, upto: int, limit: int | None = None
) -> tuple[Committed, ...]:
    """The transactions that `peek` would give, in its order; with `limit` 1 no more than the first.

    Transactions without a change of a published table are not among them.
    """
    query = TRANSACTIONS.format(
        _query(slot, publication, upto, limit), sql.Literal(BEGIN), sql.Literal(COMMIT)
    )
    with slot_faults():
        messages = [message for (message,) in patiently(lambda: connection.execute(query))]
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
        upto=sql.Literal(to_text(upto)),
        limit=sql.Literal(limit),
        publication=names,
    )


class SlotLog(Protocol):
    """All that is not acknowledged, in the order of commits; positions given are on disk.

    Everything raises `slot-lost`, and `slot-busy` while someone else reads the slot.
    """

    def news(self) -> int | None:
        """Up to where the log is here already; None if the server has to be asked."""

    def transactions(self, upto: int, limit: int | None = None) -> tuple[Committed, ...]:
        """Those with commits that begin before a position; with `limit` 1 no more than the first.

        Transactions without a change of a published table are not among them.
        """

    def messages(self, upto: int) -> Iterator[pa.Array]:
        """Their messages, some megabytes at a time; a later transaction may be among them."""

    def acknowledge(self, position: int) -> None:
        """Let go of what is before a position; it must be recorded already, and needed no more."""


@dataclass(frozen=True)
class PeekedLog:
    """The server decodes anew whenever it is asked; between two questions nothing is held."""

    database: Database
    slot: str
    publication: str

    def news(self) -> None:
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
class CopiedLog(PeekedLog):
    """Tells of transactions by a slot that begins where ours does, and goes with its session.

    It changes nothing. Where the server has no slot left for it, ours is waited for.
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
