"""What a daemon remembers of stream tables beside the catalog, and what is due by that. Pure."""

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
from headrace.schedule.schedule import Schedule, parse_schedule
from headrace.schedule.tiers import AUTO, ReadActivity, Tier, classify, demanded, tier_option
from headrace.settings import Settings

Groups = Iterable[ConsistencyGroup[str]]


@dataclass
class ScheduleState:
    """By relation: when a table was last attempted for its schedule, when it may be tried again
    after a failure, how often in a row something outside was missing, what is known of others'
    reads, and how many of them there were when it was last attempted."""

    last: dict[str, datetime] = field(default_factory=dict)
    retry_at: dict[str, datetime] = field(default_factory=dict)
    outages: dict[str, int] = field(default_factory=dict)
    reads: dict[str, ReadActivity] = field(default_factory=dict)
    read_before: dict[str, int] = field(default_factory=dict)

    def attempted(self, relations: Iterable[str], now: datetime) -> None:
        for name in relations:
            self.last[name] = now
            self.retry_at.pop(name, None)
            if name in self.reads:
                self.read_before[name] = self.reads[name].total

    def missed(self, relations: Collection[str]) -> int:
        """Count that something outside was missing; how often in a row by now."""
        for name in relations:
            self.outages[name] = self.outages.get(name, 0) + 1
        return max(self.outages[name] for name in relations)

    def found(self, relations: Iterable[str]) -> None:
        """Nothing outside was missing."""
        for name in relations:
            self.outages.pop(name, None)

    def keep(self, relations: Set[str]) -> None:
        """Forget all other tables."""
        for known in (self.last, self.retry_at, self.outages, self.reads, self.read_before):
            for name in known.keys() - relations:
                del known[name]


def agenda(
    state: State, settings: Settings, groups: Groups, memory: ScheduleState, running: Set[str]
) -> tuple[ScheduledGroup, ...]:
    """What is refreshed as one, each after all that it reads, with what decides when it is due."""
    tables = {table.relation: table for table in state.stream_tables}
    reads = {name: table.inputs for name, table in tables.items()}
    schedules = effective_schedules(
        {name: _parsed(table.schedule, settings.time_zone) for name, table in tables.items()}, reads
    )
    tiers = tiers_of(tables, settings, memory)
    found = []
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
        found.append(ScheduledGroup(members, policy(unit, tables, settings)))
    return tuple(found)


def followed(groups: Iterable[ScheduledGroup]) -> frozenset[str]:
    """The tables that a daemon refreshes: those with a schedule, and all of their groups."""
    return frozenset(
        member.relation
        for group in groups
        if any(one.schedules for one in group.members)
        for member in group.members
    )


def tiers_of(
    tables: Mapping[str, StreamTable], settings: Settings, memory: ScheduleState
) -> dict[str, Tier]:
    """The tier of every table: the one set by hand, or the one that others' reads make it."""
    said = {name: tier_option(table, settings) for name, table in tables.items()}
    automatic = {name for name, tier in said.items() if tier == AUTO}
    found = {name: Tier(tier) for name, tier in said.items() if tier != AUTO}
    for name in automatic:
        known = memory.reads.get(name)
        found[name] = Tier.HOT if known is None else classify(known)
    return demanded(found, automatic, {name: table.inputs for name, table in tables.items()})


def startable(
    due: Iterable[Due], reads: Mapping[str, Iterable[str]], lacking: Set[str], running: Set[str]
) -> tuple[tuple[Due, ...], tuple[Due, ...]]:
    """Of what is due, in order, what can be started, and what has nothing to do.

    What reads a table that is being refreshed, or is to be, waits for it and is neither.
    """
    ahead = set(running)
    start, idle = [], []
    for one in due:
        if any(read in ahead for name in one.relations for read in reads[name]):
            ahead.update(one.relations)
        elif lacking.isdisjoint(one.relations):
            idle.append(one)
        else:
            start.append(one)
            ahead.update(one.relations)
    return tuple(start), tuple(idle)


def passed(idle: Iterable[Due], groups: Iterable[ScheduledGroup]) -> tuple[Due, ...]:
    """Of what was due and had nothing to do, that whose moment is over.

    What is due by a period stays due: the next change is followed at once.
    """
    at_times = {
        member.relation
        for group in groups
        for member in group.members
        if any(isinstance(one, Cron) for one in member.schedules)
    }
    return tuple(
        one
        for one in idle
        if one.cause is not Cause.SCHEDULE or not at_times.isdisjoint(one.relations)
    )


def _begun_at(table: StreamTable) -> datetime | None:
    """From when on its schedule counts: one without rows waits for the next time, as others do."""
    return table.created_at if table.is_uninitialized else table.published_at


def _was_read(memory: ScheduleState, name: str) -> bool:
    known = memory.reads.get(name)
    return known is not None and known.total > memory.read_before.get(name, 0)


@lru_cache(maxsize=4096)
def _parsed(schedule: str | None, zone: str) -> Schedule | None:
    return parse_schedule(schedule, zone)
