"""Quotas: which of the waiting jobs get the free workers, database by database. Pure.

A database is entitled to its quota of the workers, or to its share of those that the quotas of
others leave. A database may borrow workers that others leave unused, up to half as much again, and
gives them back as its jobs end: databases that use less than they are entitled to come first. Where
the workers do not suffice for these, the higher priority comes first.
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
    """The claim of a database to workers: `quota` of them, or its `share` of the rest."""

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
        """The sort key: hotter jobs first, then those that wait longer."""
        return self.tier.rank, self.since, self.name


def pick(
    waiting: Iterable[Job], running: Iterable[int], workers: int, claims: Mapping[int, Claim]
) -> tuple[Job, ...]:
    """Return the jobs to start now. `running` has one database number for each running job.

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
    all_claims = {database: claims.get(database, Claim()) for database in {*claims, *lines, *busy}}
    quota = entitled(all_claims, workers)
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
                -all_claims[database].priority,
                busy[database] / quota[database],
                lines[database][-1].since,
                database,
            ),
        )
        picked.append(lines[chosen].pop())
        busy[chosen] += 1
    return tuple(picked)


def entitled(claims: Mapping[int, Claim], workers: int) -> dict[int, Fraction]:
    """Return the workers that each database is entitled to, as fractions; the sum may be too large.

    Where quotas leave nothing, the databases without a quota share a single worker.
    """
    left = max(workers - sum(claim.quota or 0 for claim in claims.values()), 1)
    shares = sum(claim.share for claim in claims.values() if claim.quota is None)
    return {
        database: Fraction(min(claim.quota, workers))
        if claim.quota is not None
        else Fraction(left * claim.share, shares)
        for database, claim in claims.items()
    }
