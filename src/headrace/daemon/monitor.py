"""Measuring of backlogs by the daemon: slots, change buffers, late stream tables, the disk.

The judgements are those of `headrace health`; the monitor sends an alert when one of them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

from headrace.capture.observe import Observed, observe_sizes
from headrace.capture.wal.slot_probe import Level
from headrace.catalog import State
from headrace.catalog.alert import Alert, log, notify, qualified
from headrace.catalog.records import CaptureMode, DatabaseRecord, StreamTable
from headrace.engine import HOME, Engine
from headrace.errors import HeadraceError
from headrace.observe import health
from headrace.observe.cdc_status import buffer_level, slot_level
from headrace.observe.lag import availability, failing_databases, lags
from headrace.refresh.epochs import lacks
from headrace.schedule.crossings import Sent, Subject, crossings
from headrace.schedule.state import schedules_of
from headrace.schedule.tiers import Tier
from headrace.settings import Settings
from headrace.source.faults import translated

Measured: TypeAlias = dict[Subject, tuple[Level, str]]

Room = Callable[[], tuple[int, int]]
"""Returns the free and the total bytes of the project's disk."""

LAG_UNKNOWN = "was due, and how long it has lacked changes is unknown: see headrace health"

ALL_HOT: Mapping[str, Tier] = {}

WATCHING = Alert(
    "daemon",
    "daemon",
    "fine",
    "watching",
    "levels are measured from now on; those that are not fine are sent again",
)


class Monitor:
    """The levels that a daemon has sent, by area; an area that cannot be measured keeps its own."""

    def __init__(self, room: Room | None = None) -> None:
        self._room = room
        self._sent: dict[Hashable, Mapping[Subject, Sent]] | None = None

    def look(
        self, engine: Engine, state: State, now: datetime, tiers: Mapping[str, Tier] = ALL_HOT
    ) -> None:
        """Measure levels and send an alert for each that has changed.

        Alerts that could not be sent are sent by the next call. `tiers` are those in force, by
        relation; a table without one is hot.
        """
        settings = engine.settings(state)
        before = self._sent or {}
        # The levels that an earlier daemon has sent are not known.
        alerts = [WATCHING] if self._sent is None else []
        after = dict(before)
        areas = self._areas(engine, state, settings, now, tiers)
        for area in [*before.keys() - areas.keys(), *areas]:
            measured = areas.get(area, {})
            if measured is not None:
                after[area], area_alerts = crossings(before.get(area, {}), measured, now)
                alerts += area_alerts
        if alerts:
            with (
                translated(),
                engine.database.session() as connection,
                connection.transaction(),
            ):
                notify(connection, alerts)
            log(alerts)
        self._sent = {area: sent for area, sent in after.items() if sent}

    def _areas(
        self,
        engine: Engine,
        state: State,
        settings: Settings,
        now: datetime,
        tiers: Mapping[str, Tier],
    ) -> dict[Hashable, Measured | None]:
        """Return the measured levels by area, None for an area that cannot be measured now."""
        areas: dict[Hashable, Measured | None] = {
            ("database", database.id): _database(engine, state, settings, database)
            for database in state.databases
        }
        areas["lag"] = late_tables(engine, state, settings, now, tiers)
        areas["disk"] = self._disk()
        return areas

    def _disk(self) -> Measured | None:
        if self._room is None:
            return {}
        try:
            return disk_level(*self._room())
        except OSError:
            return None


def _database(
    engine: Engine, state: State, settings: Settings, database: DatabaseRecord
) -> Measured | None:
    oids = [source.oid for source in state.sources if source.database == database.id]
    if not oids:
        return {}
    if database.failing_since is not None:
        # The failure has an alert of its own, and the daemon must not wait for an answer.
        return None
    slot = None if database.following is None else database.following.slot
    try:
        observed = observe_sizes(engine.source_database(database), oids, slot)
    except HeadraceError:
        if database.id == HOME:
            raise
        return None
    return sizes(state, settings, database, observed)


def sizes(state: State, settings: Settings, database: DatabaseRecord, seen: Observed) -> Measured:
    """Return the levels of a database's slot and change buffers (pure)."""
    measured: Measured = {}
    if database.following is not None and seen.slot is not None:
        name = database.following.slot
        measured["slot", name, "slot-lag"] = slot_level(settings, name, seen.slot)
    for source in state.sources:
        if source.database == database.id and source.mode is not CaptureMode.WAL:
            level = buffer_level(settings, seen.buffers.get(source.oid, 0))
            measured["source", qualified(*state.name_parts(source)), "buffer-size"] = level
    return measured


def late_tables(
    engine: Engine,
    state: State,
    settings: Settings,
    now: datetime,
    tiers: Mapping[str, Tier] = ALL_HOT,
) -> Measured:
    """Return the stream tables with a schedule, and whether they are later than promised.

    A calculated table is judged by the schedules of those that read it. A table whose lag is
    unknown counts from its latest refresh, or from its creation.
    """
    schedules = schedules_of(state, settings.time_zone)

    def is_late(table: StreamTable, lag: timedelta) -> bool:
        tier = tiers.get(table.relation, Tier.HOT)
        return health.is_late(schedules[table.relation], tier, lag, now)

    def may_be_late(table: StreamTable) -> bool:
        # No change that a table lacks is older than the cut behind it.
        since = table.created_at if table.epoch == 0 else table.as_of
        lacking = table.epoch == 0 or lacks(state, table) or failing_databases(state, table)
        return since is not None and bool(lacking) and is_late(table, now - since)

    maybe_late = [table for table in state.stream_tables if may_be_late(table)]
    measured: Measured = {
        _late(table): ("fine", "is not later than its schedule says")
        for table in state.stream_tables
        if table.schedule is not None
    }
    lags_by_relation = lags(state, availability(engine, state), now) if maybe_late else {}
    for table in maybe_late:
        own = lags_by_relation[table.relation].own
        if own is None:
            measured[_late(table)] = ("warning", LAG_UNKNOWN)
        elif is_late(table, own):
            measured[_late(table)] = ("warning", health.behind(own))
    return measured


def _late(table: StreamTable) -> Subject:
    return "table", qualified(table.schema, table.name), "late"


def disk_level(free: int, total: int) -> Measured:
    """Return the level of the project's disk (pure)."""
    judgement = health.disk(free, total)
    return {("disk", "project", "disk-space"): (judgement.level, judgement.detail)}
