"""Who is due: a function of the time and of what is known about each table. Pure.

A table is due when its schedule has come round since the last attempt, however often: what was
missed is made good by one refresh. All moments are in UTC, so daylight saving changes nothing but
what a cron line means. A clock that was set back makes due whatever was attempted later than now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from headrace.catalog.records import Status
from headrace.graph.policy import Policy
from headrace.schedule.schedule import Timed, moment_after
from headrace.schedule.tiers import Tier

EVER = datetime.min.replace(tzinfo=UTC)


class Cause(StrEnum):
    """Why something is due."""

    SCHEDULE = "schedule"
    READ = "read"
    RETRY = "retry"
    CLOCK = "clock set back"


@dataclass(frozen=True)
class Member:
    """What is known of one stream table.

    `schedules` are the effective ones, none for a manual table. `last` is when the last attempt
    for the schedule was started, or when the table was published; None is never. `read` says that
    others have read it since then. `retry_at` is set after an attempt that failed.
    """

    relation: str
    schedules: frozenset[Timed]
    tier: Tier = Tier.HOT
    last: datetime | None = None
    read: bool = False
    retry_at: datetime | None = None
    status: Status = Status.ACTIVE
    running: bool = False


@dataclass(frozen=True)
class ScheduledGroup:
    """Tables that are refreshed as one, in their order; most often a single one."""

    members: tuple[Member, ...]
    policy: Policy = "fastest"


@dataclass(frozen=True)
class Due:
    """Tables to be refreshed as one, since when they are due and why; `tier` is the hottest."""

    relations: tuple[str, ...]
    since: datetime
    cause: Cause
    tier: Tier


def due(now: datetime, groups: Iterable[ScheduledGroup], lazy: timedelta) -> tuple[Due, ...]:
    """All that is due now, in the order of the groups.

    `lazy` is the time within which a read of a cold or frozen table is followed by a refresh.
    """
    now = now.astimezone(UTC)
    return tuple(one for one in _moments(now, groups, lazy) if one.since <= now)


def next_due(now: datetime, groups: Iterable[ScheduledGroup], lazy: timedelta) -> datetime | None:
    """When the next of those that are not due will be; None if no time brings that about.

    Until then only a change of what is known does: a refresh that ends, a read, a new table.
    """
    now = now.astimezone(UTC)
    later = (one.since for one in _moments(now, groups, lazy) if one.since > now)
    return min(later, default=None)


def _moments(now: datetime, groups: Iterable[ScheduledGroup], lazy: timedelta) -> Iterator[Due]:
    """Since when each group is due, or will be; those that no time makes due are left out."""
    for group in groups:
        found = _group(group, now, lazy)
        if found is not None:
            tier = min((one.tier for one in group.members), key=lambda tier: tier.rank)
            yield Due(tuple(one.relation for one in group.members), *found, tier)


def _group(group: ScheduledGroup, now: datetime, lazy: timedelta) -> tuple[datetime, Cause] | None:
    members = group.members
    if any(one.running or one.status is Status.SUSPENDED for one in members):
        return None
    retries = [one for one in members if one.retry_at is not None]
    if retries:
        return max(_retry(one, now) for one in retries)
    moments = [found for one in members if (found := _member(one, now, lazy)) is not None]
    if not moments:
        return None
    return min(moments) if group.policy == "fastest" else max(moments)


def _retry(member: Member, now: datetime) -> tuple[datetime, Cause]:
    if member.last is not None and now < member.last:
        return EVER, Cause.CLOCK
    assert member.retry_at is not None
    return member.retry_at, Cause.RETRY


def _member(member: Member, now: datetime, lazy: timedelta) -> tuple[datetime, Cause] | None:
    """When a table is due by itself; None if it is manual, or cold and nobody has read it."""
    tier, last = member.tier, member.last
    if not member.schedules or (tier.waits_for_reads and not member.read):
        return None
    if last is None:
        return EVER, Cause.SCHEDULE
    if now < last:
        return EVER, Cause.CLOCK
    moments = []
    if tier is not Tier.FROZEN:
        turns = (moment_after(one, last, tier.turns) for one in member.schedules)
        moments += [(moment, Cause.SCHEDULE) for moment in turns if moment is not None]
    if tier.waits_for_reads:
        moments.append((last + lazy, Cause.READ))
    return min(moments, default=None)
