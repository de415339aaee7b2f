"""Tiers: how closely a table follows its schedule, set by hand or derived from reads. Pure.

    hot     its schedule
    warm    every second time of its schedule
    cold    its schedule, but only if it was read since its last refresh
    frozen  not its schedule; refreshed when it was read

PostgreSQL counts the scans of every table. Headrace counts its own scans apart and subtracts them:
the rest are reads by others, by which `auto` tables are classified.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING

from headrace.graph.components import components
from headrace.schedule.effective import readers_of

if TYPE_CHECKING:
    from headrace.catalog.records import StreamTable
    from headrace.settings import Settings

AUTO = "auto"
# Reads a minute: more are hot, fewer are cold.
HOT_ABOVE = 10
WARM_FROM = 1
# Rates are taken over this time; a table that was not watched for so long yet is hot.
WATCHED = timedelta(minutes=5)
# PostgreSQL reports scans within this time at the latest.
REPORTED_WITHIN = timedelta(minutes=1)
# A table without any read for this long is frozen.
FROZEN_AFTER = timedelta(hours=1)


class Tier(StrEnum):
    """The tiers, the hottest first."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"
    FROZEN = "frozen"

    @property
    def rank(self) -> int:
        """0 for the hottest."""
        return _RANKS[self]

    @property
    def turns(self) -> int:
        """The turn of its schedule at which a table is due: every first, or every second."""
        return 2 if self is Tier.WARM else 1

    @property
    def waits_for_reads(self) -> bool:
        return self in (Tier.COLD, Tier.FROZEN)


_RANKS = {tier: rank for rank, tier in enumerate(Tier)}


@dataclass(frozen=True)
class ScanCounters:
    """Two counters as they were at a moment: all scans of a served table, and our own of it."""

    at: datetime
    scans: int
    own: int


@dataclass(frozen=True)
class ReadActivity:
    """Reads of a table by others, computed from one sample after the other.

    `total` counts them since the watch began at `since`; a table was read since some moment if
    its total has grown since then. `recent` has those of the last minutes with the times at which
    they were noticed, `read_at` is the last such time. Our own scans are known at once, but
    PostgreSQL reports them some seconds later: `ahead` of them have still to come, and are no reads
    by others when they do. So have, for a while, the `early` ones that had not come when the watch
    began; if they do not, the counters were reset before.
    """

    since: datetime
    last: ScanCounters
    total: int = 0
    ahead: int = 0
    early: int = 0
    recent: tuple[tuple[datetime, int], ...] = ()
    read_at: datetime | None = None

    @staticmethod
    def begin(sample: ScanCounters) -> ReadActivity:
        return ReadActivity(sample.at, sample, early=max(sample.own - sample.scans, 0))

    def then(self, sample: ScanCounters) -> ReadActivity:
        """Return the activity with one more sample.

        A counter that went back was reset, so no reads are counted. If the clock went back, the
        watch starts over; the total stays.
        """
        if sample.at < self.last.at:
            return replace(ReadActivity.begin(sample), total=self.total)
        scans, own = sample.scans - self.last.scans, sample.own - self.last.own
        reset = scans < 0 or own < 0
        early = self.early if sample.at - self.since <= REPORTED_WITHIN else 0
        surplus = 0 if reset else scans - own - self.ahead - early
        count, coming = max(surplus, 0), max(-surplus, 0)
        recent = tuple(entry for entry in self.recent if entry[0] > sample.at - WATCHED)
        return replace(
            self,
            last=sample,
            total=self.total + count,
            ahead=max(coming - early, 0),
            early=min(coming, early),
            recent=(*recent, (sample.at, count)) if count else recent,
            read_at=sample.at if count else self.read_at,
        )


def tier_option(table: StreamTable, settings: Settings) -> str:
    """Return the value of option `tier` of a table, or the default for all."""
    return str(table.options.get("tier", settings.default_tier))


def is_watched(table: StreamTable, settings: Settings) -> bool:
    """Return whether the time of a table's refresh depends on reads."""
    option = tier_option(table, settings)
    return option == AUTO or Tier(option).waits_for_reads


def classify(reads: ReadActivity) -> Tier:
    """Return the tier by others' reads a minute; a table not watched long enough is hot."""
    return _tier_at(reads, reads.last.at, sum(count for _, count in reads.recent))


def per_minute(reads: ReadActivity) -> float:
    """Return the reads by others a minute."""
    return sum(count for _, count in reads.recent) / (WATCHED / timedelta(minutes=1))


def decline(reads: ReadActivity) -> tuple[tuple[datetime, Tier], ...]:
    """Return the tiers that a table comes to, and when, if nobody reads it from now on."""
    times = [at for at, _ in reads.recent]
    # The reads that are left without the first of them, the first two, …
    left = [*accumulate((count for _, count in reversed(reads.recent)), initial=0)][::-1]
    unread_since = reads.read_at or reads.since
    moments = {reads.since + WATCHED, unread_since + FROZEN_AFTER, *(at + WATCHED for at in times)}
    tier, declines = classify(reads), []
    for moment in sorted(moment for moment in moments if moment > reads.last.at):
        later = _tier_at(reads, moment, left[bisect_right(times, moment - WATCHED)])
        if later is not tier:
            tier = later
            declines.append((moment, tier))
    return tuple(declines)


def _tier_at(reads: ReadActivity, now: datetime, recent: int) -> Tier:
    """Return the tier at a moment, with `recent` reads in the time WATCHED before it."""
    rate = recent / (WATCHED / timedelta(minutes=1))
    if rate > HOT_ABOVE or now - reads.since < WATCHED:
        return Tier.HOT
    if rate >= WARM_FROM:
        return Tier.WARM
    return Tier.COLD if now - (reads.read_at or reads.since) < FROZEN_AFTER else Tier.FROZEN


def with_demand_of_readers(
    tiers: Mapping[str, Tier], automatic: Set[str], reads: Mapping[str, Iterable[str]]
) -> dict[str, Tier]:
    """Return the tiers in force: an automatic table is at least as hot as its hottest reader.

    Otherwise a table that only other stream tables read would freeze, and its readers would get
    no changes.
    """
    in_force = dict(tiers)
    readers = readers_of(reads, automatic)
    for component in reversed(
        components({name: automatic & set(reads.get(name, ())) for name in automatic})
    ):
        related = {
            *component.members,
            *(reader for name in component.members for reader in readers[name]),
        }
        hottest = min((in_force[name] for name in related), key=lambda tier: tier.rank)
        in_force |= dict.fromkeys(component.members, hottest)
    return in_force
