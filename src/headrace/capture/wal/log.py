"""The log of one database as its slot hands it out: the same again until it is acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headrace.capture.wal.peek import peek, peek_transactions
from headrace.capture.wal.slot import advance
from headrace.capture.wal.visibility import Committed
from headrace.source.connection import Database


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
