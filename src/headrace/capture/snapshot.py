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
        """From PostgreSQL's own text, xmin:xmax:running,running,…"""
        _, xmax, running = text.split(":")
        return Snapshot(int(xmax), frozenset(int(one) for one in running.split(",") if one))

    @property
    def xmin(self) -> int:
        """All transactions before it have ended."""
        return min(self.running, default=self.xmax)

    def sees(self, transaction: int) -> bool:
        return transaction < self.xmax and transaction not in self.running


def contains(later: str, earlier: str) -> bool:
    """Whether every transaction that is visible in one snapshot is visible in the other, too."""
    one, other = Snapshot.read(later), Snapshot.read(earlier)
    beyond = max(other.xmax - one.xmax, 0)
    unseen = sum(one.xmax <= transaction < other.xmax for transaction in other.running)
    return beyond == unseen and not any(map(other.sees, one.running))
