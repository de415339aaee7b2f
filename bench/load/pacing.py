"""When the transactions of an open-loop load are due, and which are left out under a backlog."""

from __future__ import annotations

from dataclasses import dataclass

# Commits a second of all writers at low rates: their transactions are small.
LEAST_COMMITS = 20


def transaction_rows(rate: int, largest: int) -> int:
    """Return the row changes of a transaction at a rate: few commits would hide the lag."""
    return max(1, min(largest, rate // LEAST_COMMITS))


@dataclass
class Pace:
    """The times of one writer's transactions of `size` row changes, `rate` row changes a second.

    Times are seconds since the load began. What is due does not wait for what came before, so a
    database that is slow gets no fewer writes; but of what is more than `backlog` seconds late, all
    is left out and counted.
    """

    rate: float
    size: int
    backlog: float
    offset: float = 0.0
    skipped: int = 0
    latest: float = 0.0
    _number: int = 0

    def due(self, number: int) -> float:
        """Return when a transaction is due."""
        return self.offset + number * self.size / self.rate

    def next(self, now: float) -> float:
        """Return when the next transaction is due that is not left out."""
        late = now - self.due(self._number)
        self.latest = max(self.latest, min(late, self.backlog))
        if late > self.backlog:
            left_out = int((late - self.backlog) * self.rate / self.size) + 1
            self._number += left_out
            self.skipped += left_out
        due = self.due(self._number)
        self._number += 1
        return due
