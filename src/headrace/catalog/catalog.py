"""The protocol of the catalog, which has two stores (PostgreSQL and memory)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeAlias

import psycopg

from headrace.catalog.records import (
    CutRecord,
    DatabaseRecord,
    Effort,
    Lease,
    Receipt,
    Refresh,
    Relation,
    Source,
    StratumTicks,
    StreamTable,
    TierInForce,
)
from headrace.catalog.requests import Requests
from headrace.catalog.state import State
from headrace.errors import Unavailable

Record: TypeAlias = DatabaseRecord | Relation | Source | StreamTable

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
# The open transaction of a commit in the home database. A function that gets it must neither commit
# it nor roll it back; raising an error rolls it back.
Transaction: TypeAlias = Connection


@dataclass(frozen=True)
class Change:
    """The change of one commit: records are removed, then put, then lines added to the history.

    A record is put in the place of the one with the same key, and removed by its key alone
    (`id`; for sources and stream tables `relation`). Of two put with one key the later counts.
    `successors` are pairs of relations: the history of the first becomes that of the second.
    """

    put: tuple[Record, ...] = ()
    remove: tuple[Record, ...] = ()
    epochs: tuple[CutRecord, ...] = ()
    refreshes: tuple[Refresh, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    successors: tuple[tuple[str, str], ...] = ()


class Catalog(Requests, Protocol):
    """All records and settings of a project, and the right to change them.

    A catalog is used by any thread, one call at a time; `apply` must not call it.
    """

    def state(self) -> State:
        """Return all records and settings of one moment, in one round trip."""

    def next_epoch(self) -> int:
        """Return an epoch number, greater than all before and never returned again, used or not."""

    def commit(
        self,
        change: Change,
        *,
        fence: int,
        apply: Callable[[Transaction], None] | None = None,
    ) -> None:
        """Make the change durable in one transaction, together with what `apply` does in it.

        Raise `lease-lost` if `fence` is not the newest. After any error nothing was written, with
        one exception: after `connection-lost` only `state()` shows whether the change was written.
        """

    def lease(
        self, holder: str, wait: float = 0.0, *, serves: bool = False
    ) -> AbstractContextManager[Lease]:
        """Hold the right to write for a `with`; raise `lease-held` if it is not free in `wait` s.

        There is one holder at a time among all processes and threads. A thread that holds the lease
        may take it again and gets the same lease. A process that dies releases it. A holder that
        `serves` is not waited for: queue a request for it.
        """

    def cuts(self, epoch: int) -> tuple[CutRecord, ...]:
        """Return the cut that the epoch names, for every database that had one by then."""

    def refreshes(self, table: str | None = None, limit: int | None = 100) -> tuple[Refresh, ...]:
        """Return the latest refreshes of a stream table (a relation id) or of all, newest first."""

    def efforts(self, table: str, limit: int) -> tuple[tuple[str, Effort], ...]:
        """Return the modes and efforts of a table's refreshes that succeeded, newest first.

        There are at most `limit` of each mode.
        """

    def strata_ticks(self) -> tuple[StratumTicks, ...]:
        """Return the ticks of daemons so far, of every stratum with any, the lowest first."""

    def count_ticks(self, ticks: Iterable[StratumTicks]) -> None:
        """Add ticks to those counted so far."""

    def prune_history(self, tables: Iterable[str], before: datetime, keep: int) -> int:
        """Remove lines that ended before a time, and lines beyond the latest `keep` of a table.

        Return the number of lines of refreshes that were removed. Of the tables named (by relation
        id) these stay whatever their age: the latest line, the first of the relation, the latest
        64 of each mode that `efforts` returns, the first that a reader lacks, and the latest
        receipt. Of relations that are no stream tables any more only the time counts. Beyond the
        latest `keep` cuts of a database the first of every minute stays, and of every day before
        the time.
        """

    def tiers(self) -> tuple[TierInForce, ...]:
        """Return the tiers that a daemon has recorded last, ordered by relation id."""

    def note_tiers(self, tiers: Iterable[TierInForce]) -> None:
        """Record these tiers in the place of those recorded so far."""

    def receipts(self, table: str | None = None, limit: int | None = 100) -> tuple[Receipt, ...]:
        """Return the latest receipts of a relation or of all, newest first."""

    def set(self, name: str, value: Any) -> None:
        """Store a setting; None resets it to its default."""

    def close(self) -> None:
        """Release the lease if it is held, and close the connection."""


def lease_held(lease: Lease | None) -> Unavailable:
    """Return the error for a writer without the lease; `lease` is the holder's, if known."""
    serves = lease is not None and lease.serves
    return Unavailable(
        "lease-held",
        "a daemon is writing" if serves else "another process is writing",
        detail=None
        if lease is None
        else f"{lease.holder} (process {lease.pid}) has been writing since "
        f"{lease.acquired_at.isoformat(sep=' ', timespec='seconds')}.",
        hint="Stop it first." if serves else "Wait until it has finished, or stop it.",
    )


def lease_lost(fence: int, newest: int) -> Unavailable:
    """Return the error for a writer whose lease was taken over."""
    return Unavailable(
        "lease-lost",
        "another process took over writing",
        detail=f"Ours was lease {fence}, the newest is {newest}; nothing was written.",
    )
