"""Snapshots of PostgreSQL compared by the transactions that are visible in them. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Snapshot:
    """A pg_snapshot: all transactions before `xmax` are visible but those `running`."""

    xmax: int
    running: frozenset[int]

    @staticmethod
    def read(text: str) -> Snapshot:
        """Return the snapshot in PostgreSQL's text xmin:xmax:running,running,…"""
        _, xmax, running = text.split(":")
        return Snapshot(int(xmax), frozenset(int(xid) for xid in running.split(",") if xid))

    @property
    def xmin(self) -> int:
        """The oldest running transaction, or `xmax`; all transactions before it have ended."""
        return min(self.running, default=self.xmax)

    def sees(self, transaction: int) -> bool:
        return transaction < self.xmax and transaction not in self.running


def contains(later: str, earlier: str) -> bool:
    """Return whether every transaction that is visible in `earlier` is visible in `later`, too."""
    later_snapshot, earlier_snapshot = Snapshot.read(later), Snapshot.read(earlier)
    beyond = max(earlier_snapshot.xmax - later_snapshot.xmax, 0)
    unseen = sum(
        later_snapshot.xmax <= transaction < earlier_snapshot.xmax
        for transaction in earlier_snapshot.running
    )
    return beyond == unseen and not any(map(earlier_snapshot.sees, later_snapshot.running))
