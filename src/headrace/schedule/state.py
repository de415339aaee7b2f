"""A daemon's schedule state of stream tables, kept in memory, and groups and tiers by it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.graph.diamonds import ConsistencyGroup
from headrace.graph.policy import policy, units
from headrace.schedule.cron import Cron
from headrace.schedule.due import Cause, Due, Member, ScheduledGroup
from headrace.schedule.effective import effective_schedules
from headrace.schedule.schedule import Schedule, Timed, parse_schedule
from headrace.schedule.tiers import (
    AUTO,
    ReadActivity,
    Tier,
    classify,
    tier_option,
    with_demand_of_readers,
)
from headrace.settings import Settings

Groups = Iterable[ConsistencyGroup[str]]


@dataclass
class ScheduleState:
    """Per relation: when its last attempt was started (`last`) and ended (`ended`), when it may be
    retried after a failure, how many outages in a row it met, the reads by others, and how many of
    those there were at its last attempt (`read_before`)."""

    last: dict[str, datetime] = field(default_factory=dict)
    retry_at: dict[str, datetime] = field(default_factory=dict)
    outages: dict[str, int] = field(default_factory=dict)
    reads: dict[str, ReadActivity] = field(default_factory=dict)
    read_before: dict[str, int] = field(default_factory=dict)
    ended: dict[str, datetime] = field(default_factory=dict)

    def attempted(self, relations: Iterable[str], now: datetime) -> None:
        """Note that an attempt was started, or was not needed."""
        for name in relations:
            self.last[name] = now
            self.retry_at.pop(name, None)
            if name in self.reads:
                self.read_before[name] = self.reads[name].total

    def missed(self, relations: Collection[str]) -> int:
        """Count an outage of something outside; return the most outages in a row so far."""
        for name in relations:
            self.outages[name] = self.outages.get(name, 0) + 1
        return max(self.outages[name] for name in relations)

    def found(self, relations: Iterable[str]) -> None:
        """Reset the count of outages: nothing outside was missing."""
        for name in relations:
            self.outages.pop(name, None)

    def keep(self, relations: Set[str]) -> None:
        """Forget all tables except these."""
        by_relation = (
            self.last,
            self.retry_at,
            self.outages,
            self.reads,
            self.read_before,
            self.ended,
        )
        for values in by_relation:
            for name in values.keys() - relations:
                del values[name]


def agenda(
    state: State, settings: Settings, groups: Groups, memory: ScheduleState, running: Set[str]
) -> tuple[ScheduledGroup, ...]:
    """Return the groups in dependency order, with all that decides when they are due."""
    tables = {table.relation: table for table in state.stream_tables}
    schedules = schedules_of(state, settings.time_zone)
    tiers = tiers_of(tables, settings, memory)
    scheduled_groups = []
    for unit in units(groups, tables, settings):
        members = tuple(
            Member(
                name,
                schedules[name],
                tiers[name],
                memory.last.get(name) or _begun_at(tables[name]),
                _was_read(memory, name),
                memory.retry_at.get(name),
                tables[name].status,
                name in running,
            )
            for name in unit.members
        )
        scheduled_groups.append(ScheduledGroup(members, policy(unit, tables, settings)))
    return tuple(scheduled_groups)


def followed(groups: Iterable[ScheduledGroup]) -> frozenset[str]:
    """Return the tables that a daemon refreshes: those with a schedule, and all of their groups."""
    return frozenset(
        member.relation
        for group in groups
        if any(member.schedules for member in group.members)
        for member in group.members
    )


def schedules_of(state: State, zone: str) -> dict[str, frozenset[Timed]]:
    """Return the schedules that every table follows; `zone` is for cron lines that name none."""
    return effective_schedules(
        {table.relation: _parsed(table.schedule, zone) for table in state.stream_tables},
        {table.relation: table.inputs for table in state.stream_tables},
    )


def tiers_of(
    tables: Mapping[str, StreamTable], settings: Settings, memory: ScheduleState
) -> dict[str, Tier]:
    """Return the tier of every table: set by hand, or derived from others' reads."""
    tier_options = {name: tier_option(table, settings) for name, table in tables.items()}
    automatic = {name for name, tier in tier_options.items() if tier == AUTO}
    tiers = {name: Tier(tier) for name, tier in tier_options.items() if tier != AUTO}
    for name in automatic:
        activity = memory.reads.get(name)
        tiers[name] = Tier.HOT if activity is None else classify(activity)
    return with_demand_of_readers(
        tiers, automatic, {name: table.inputs for name, table in tables.items()}
    )


def startable(
    due: Iterable[Due],
    reads: Mapping[str, Iterable[str]],
    lacking: Set[str],
    running: Set[str],
    ended: Mapping[str, datetime],
) -> tuple[tuple[Due, ...], tuple[Due, ...]]:
    """Return the due groups that can be started, and those that have nothing to do, in order.

    A group that reads a table which is being refreshed, or is about to be, waits for it and is
    neither. It waits for one refresh: of a table whose latest refresh ended (`ended`) since the
    group became due, it takes what is published, even if the next refresh has begun. Otherwise a
    table whose refreshes take longer than its period would keep its readers waiting for ever.
    """
    ahead = set(running)
    start, idle = [], []
    for group in due:
        inputs = {read for name in group.relations for read in reads[name]}
        followed = ahead & inputs
        if any(name not in ended or ended[name] < group.since for name in followed):
            ahead.update(group.relations)
        elif not lacking.isdisjoint(group.relations):
            start.append(group)
            ahead.update(group.relations)
        elif not followed:
            idle.append(group)
    return tuple(start), tuple(idle)


def passed(
    idle: Iterable[Due],
    groups: Iterable[ScheduledGroup],
    asked_at: datetime,
    unasked: Set[str] = frozenset(),
) -> tuple[Due, ...]:
    """Return the groups that were due, had nothing to do, and whose moment has passed.

    A group that is due by a period stays due: it is refreshed as soon as it lacks a change. So does
    a group that is due at a moment of its own while its sources were not probed for changes after
    that moment: at `asked_at` the sources of all tables were, except those of the tables `unasked`.
    """
    at_times = {
        member.relation
        for group in groups
        for member in group.members
        if any(isinstance(schedule, Cron) for schedule in member.schedules)
    }
    return tuple(
        group
        for group in idle
        if unasked.isdisjoint(group.relations)
        and (
            group.cause is not Cause.SCHEDULE
            or (group.since <= asked_at and not at_times.isdisjoint(group.relations))
        )
    )


def _begun_at(table: StreamTable) -> datetime | None:
    """Return the time from which a table's schedule counts.

    A table created without rows waits for the next time of its schedule, as others do.
    """
    return table.created_at if table.is_uninitialized else table.published_at


def _was_read(memory: ScheduleState, name: str) -> bool:
    activity = memory.reads.get(name)
    return activity is not None and activity.total > memory.read_before.get(name, 0)


@lru_cache(maxsize=4096)
def _parsed(schedule: str | None, zone: str) -> Schedule | None:
    return parse_schedule(schedule, zone)
