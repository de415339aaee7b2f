"""Quotas: which of the waiting jobs get the free workers, database by database. Pure.

A database is entitled to its quota of the workers, or to its share of those that the quotas of
others leave. What others leave unused it may borrow, up to half as much again. It gives that back
as its jobs end: whoever uses less than he is entitled to comes first. Where the workers do not
suffice for that, the higher priority does.
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
class Claim:
    """What a database may claim of the workers: `quota` of them, or its `share` of what is left."""

    share: int = 1
    quota: int | None = None
    priority: int = 0


@dataclass(frozen=True)
class Job:
    """A refresh that waits for a worker; `name` is unique among them."""

    name: str
    database: int
    tier: Tier
    since: datetime

    @property
    def order(self) -> tuple[int, datetime, str]:
        """Hotter ones first, then those that wait longer."""
        return self.tier.rank, self.since, self.name


def pick(
    waiting: Iterable[Job], running: Iterable[int], workers: int, claims: Mapping[int, Claim]
) -> tuple[Job, ...]:
    """The jobs to start now. `running` has the database of every running job, as often as it has.

    `claims` are those of the attached databases; one that it does not name has a share of 1.

    First come databases that use less than they are entitled to, of these the ones of the highest
    priority, then those that use the smallest part. Among equals the one comes first whose next job
    waits longest, whatever its tier; so, of one priority, none that has jobs is passed over for
    ever.
    """
    lines: dict[int, list[Job]] = {}
    for job in sorted(waiting, key=lambda job: job.order, reverse=True):
        lines.setdefault(job.database, []).append(job)
    busy = Counter(running)
    known = {database: claims.get(database, Claim()) for database in {*claims, *lines, *busy}}
    quota = entitled(known, workers)
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
                -known[database].priority,
                busy[database] / quota[database],
                lines[database][-1].since,
                database,
            ),
        )
        picked.append(lines[chosen].pop())
        busy[chosen] += 1
    return tuple(picked)


def entitled(claims: Mapping[int, Claim], workers: int) -> dict[int, Fraction]:
    """How many workers each database is entitled to, in parts; together it may be too many.

    Where quotas leave nothing, those without one share a single worker.
    """
    left = max(workers - sum(one.quota or 0 for one in claims.values()), 1)
    shares = sum(one.share for one in claims.values() if one.quota is None)
    return {
        database: Fraction(min(one.quota, workers))
        if one.quota is not None
        else Fraction(left * one.share, shares)
        for database, one in claims.items()
    }
