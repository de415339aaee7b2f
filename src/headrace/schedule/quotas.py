"""Quotas: which of the waiting jobs get the free workers, database by database. Pure.

Every attached database has a share of the workers. What others leave unused it may borrow, up to
half as much again. It gives that back as its jobs end: whoever uses less of his share comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from math import ceil

from headrace.schedule.tiers import Tier

BURST = Fraction(3, 2)


@dataclass(frozen=True)
class Job:
    """A refresh that waits for a worker; `name` tells it from others."""

    name: str
    database: int
    tier: Tier
    since: datetime

    @property
    def order(self) -> tuple[int, datetime, str]:
        """Hotter ones first, then those that wait longer."""
        return self.tier.rank, self.since, self.name


def pick(
    waiting: Iterable[Job], running: Iterable[int], workers: int, shares: Mapping[int, int]
) -> tuple[Job, ...]:
    """The jobs to start now. `running` has the database of every running job, as often as it has.

    `shares` weighs the attached databases; one that it does not name weighs 1.

    First come databases that use less than their share, then those that use the smallest part
    of it. Among equals the one comes first whose next job waits longest, whatever its tier; so
    none that has jobs is passed over for ever.
    """
    lines: dict[int, list[Job]] = {}
    for job in sorted(waiting, key=lambda job: job.order, reverse=True):
        lines.setdefault(job.database, []).append(job)
    busy = Counter(running)
    weights = {database: shares.get(database, 1) for database in {*shares, *lines, *busy}}
    quota = {
        database: Fraction(workers * weight, sum(weights.values()))
        for database, weight in weights.items()
    }
    picked: list[Job] = []
    for _ in range(workers - busy.total()):
        able = [
            database
            for database, line in lines.items()
            if line and busy[database] < ceil(quota[database] * BURST)
        ]
        if not able:
            break
        chosen = min(
            able,
            key=lambda database: (
                busy[database] + 1 > quota[database],
                busy[database] / quota[database],
                lines[database][-1].since,
                database,
            ),
        )
        picked.append(lines[chosen].pop())
        busy[chosen] += 1
    return tuple(picked)
