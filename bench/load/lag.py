"""Percentiles, and lags from the commit of a mark until a table shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

PERCENTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that a share of all values does not exceed (nearest rank)."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


@dataclass(frozen=True)
class Lags:
    """Seconds of lag of each mark; a mark that was never shown has lagged until the end."""

    seconds: tuple[float, ...]
    unserved: int = 0

    def __add__(self, other: Lags) -> Lags:
        return Lags((*self.seconds, *other.seconds), self.unserved + other.unserved)

    def document(self) -> dict[str, float | int | None]:
        """Return the percentiles in milliseconds, ready for JSON."""
        found: dict[str, float | int | None] = {
            name: round(1000 * percentile(self.seconds, share)) if self.seconds else None
            for name, share in PERCENTILES.items()
        }
        return {**found, "marks": len(self.seconds), "unserved": self.unserved}


def lags(committed: Mapping[int, float], shown: Sequence[tuple[float, int]], end: float) -> Lags:
    """Return the lags of marks, given when each was committed and when a poller saw which.

    A mark counts as shown as soon as a later one is. The observation ended at `end`.
    """
    found, unserved, place = [], 0, 0
    for mark, at in sorted(committed.items()):
        while place < len(shown) and shown[place][1] < mark:
            place += 1
        if place == len(shown):
            unserved += 1
        seen = shown[place][0] if place < len(shown) else end
        found.append(max(0.0, seen - at))
    return Lags(tuple(found), unserved)


def written_until(ledger: Sequence[Sequence[float]], moment: float) -> int:
    """Return the row changes that were committed by a moment; the ledger has running totals."""
    return int(max((total for at, total in ledger if at <= moment), default=0))
