"""The seam to what Headrace remembers: one protocol, two stores (PostgreSQL and memory)."""

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
# The open transaction of a commit in the home database. Whoever gets it neither commits it nor
# rolls it back; raising does the latter.
Transaction: TypeAlias = Connection


@dataclass(frozen=True)
class Change:
    """What one commit does: first records go, then records are put, then history grows.

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
    """What Headrace remembers, and the right to change it.

    A catalog is used by any thread, one call at a time; `apply` must not call it.
    """

    def state(self) -> State:
        """All records and settings of one moment, in one round trip."""

    def next_epoch(self) -> int:
        """An epoch number, greater than all before and never given again, used or not."""

    def commit(
        self,
        change: Change,
        *,
        fence: int,
        apply: Callable[[Transaction], None] | None = None,
    ) -> None:
        """Make the change durable in one transaction, together with what `apply` does in it.

        Another fence than the newest is `lease-lost`. Whatever is raised, nothing was written,
        with one exception: after `connection-lost` only `state()` shows what became of it.
        """

    def lease(
        self, holder: str, wait: float = 0.0, *, serves: bool = False
    ) -> AbstractContextManager[Lease]:
        """The right to write, for the time of a `with`; `lease-held` if not had in `wait` seconds.

        One holder at a time among all processes and all threads. A thread that holds it may take
        it again and gets the same lease. A process that dies gives it up. A holder that `serves`
        is not waited for: leave it a request.
        """

    def cuts(self, epoch: int) -> tuple[CutRecord, ...]:
        """For every database cut by then, the cut that the epoch names."""

    def refreshes(self, table: str | None = None, limit: int | None = 100) -> tuple[Refresh, ...]:
        """The latest refreshes of a stream table (by relation id) or of all, newest first."""

    def efforts(self, table: str, limit: int) -> tuple[tuple[str, Effort], ...]:
        """The modes and efforts of a table's refreshes that succeeded, newest first.

        At most so many of each mode.
        """

    def strata_ticks(self) -> tuple[StratumTicks, ...]:
        """The ticks of daemons so far, of every stratum that was counted, the lowest first."""

    def count_ticks(self, ticks: Iterable[StratumTicks]) -> None:
        """Add ticks to those counted so far."""

    def prune_history(self, tables: Iterable[str], before: datetime, keep: int) -> int:
        """Remove lines that ended before a time, and lines beyond the latest `keep` of a table.

        Of the tables named (by relation id) these stay whatever their age: the latest line, the
        first of the relation, the latest 64 of each mode that `efforts` returns, the first that a
        reader lacks, and the latest receipt. Of relations that are no stream tables any more only
        the time counts. Beyond the latest `keep` cuts of a database the first of every minute
        stays, and of every day before the time. Return the number of lines of refreshes that were
        removed.
        """

    def tiers(self) -> tuple[TierInForce, ...]:
        """The tiers that a daemon has found last, by relation id."""

    def note_tiers(self, tiers: Iterable[TierInForce]) -> None:
        """Keep these tiers in the place of those known so far."""

    def receipts(self, table: str | None = None, limit: int | None = 100) -> tuple[Receipt, ...]:
        """The latest receipts of a relation or of all, newest first."""

    def set(self, name: str, value: Any) -> None:
        """Keep a setting; None takes it back to its default."""

    def close(self) -> None:
        """Give up the lease if held, and the connection."""


def lease_held(lease: Lease | None) -> Unavailable:
    """The error of one who did not get the lease; `lease` is who has it, if known."""
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
    """The error of one whose lease was taken over."""
    return Unavailable(
        "lease-lost",
        "another process took over writing",
        detail=f"Ours was lease {fence}, the newest is {newest}; nothing was written.",
    )
