"""The groups that are due: a function of the time and of the state of each table. Pure.

A table is due when its schedule has come round since the last attempt, however often: one refresh
makes up for all moments that were missed. All moments are in UTC, so daylight saving changes only
the meaning of cron lines. After a clock was set back, every table whose last attempt is later than
now is due.
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
    """The schedule state of one stream table.

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
    """Return the groups that are due now, in the order of `groups`.

    `lazy` is the time within which a read of a cold or frozen table is followed by a refresh.
    """
    now = now.astimezone(UTC)
    return tuple(group for group in _moments(now, groups, lazy) if group.since <= now)


def next_due(now: datetime, groups: Iterable[ScheduledGroup], lazy: timedelta) -> datetime | None:
    """Return the next moment at which a group becomes due; None if no group does by time alone.

    Before that moment a group becomes due only by another event: a refresh that ends, a read, a new
    table.
    """
    now = now.astimezone(UTC)
    later = (group.since for group in _moments(now, groups, lazy) if group.since > now)
    return min(later, default=None)


def _moments(now: datetime, groups: Iterable[ScheduledGroup], lazy: timedelta) -> Iterator[Due]:
    """Yield the moment of each group that is or becomes due by time; others are left out."""
    for group in groups:
        moment_and_cause = _group(group, now, lazy)
        if moment_and_cause is not None:
            tier = min((member.tier for member in group.members), key=lambda tier: tier.rank)
            yield Due(tuple(member.relation for member in group.members), *moment_and_cause, tier)


def _group(group: ScheduledGroup, now: datetime, lazy: timedelta) -> tuple[datetime, Cause] | None:
    members = group.members
    if any(member.running or member.status is Status.SUSPENDED for member in members):
        return None
    retries = [member for member in members if member.retry_at is not None]
    if retries:
        return max(_retry(member, now) for member in retries)
    moments = [moment for member in members if (moment := _member(member, now, lazy)) is not None]
    if not moments:
        return None
    return min(moments) if group.policy == "fastest" else max(moments)


def _retry(member: Member, now: datetime) -> tuple[datetime, Cause]:
    if member.last is not None and now < member.last:
        return EVER, Cause.CLOCK
    assert member.retry_at is not None
    return member.retry_at, Cause.RETRY


def _member(member: Member, now: datetime, lazy: timedelta) -> tuple[datetime, Cause] | None:
    """Return when a table is due by itself; None if manual, or if cold and not read since."""
    tier, last = member.tier, member.last
    if not member.schedules or (tier.waits_for_reads and not member.read):
        return None
    if last is None:
        return EVER, Cause.SCHEDULE
    if now < last:
        return EVER, Cause.CLOCK
    moments = []
    if tier is not Tier.FROZEN:
        turns = (moment_after(schedule, last, tier.turns) for schedule in member.schedules)
        moments += [(moment, Cause.SCHEDULE) for moment in turns if moment is not None]
    if tier.waits_for_reads:
        moments.append((last + lazy, Cause.READ))
    return min(moments, default=None)
