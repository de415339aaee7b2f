"""The tiers in force as users see them, with the next tier of each table. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from headrace.catalog.records import StreamTable, TierInForce
from headrace.schedule.state import ScheduleState, tiers_of
from headrace.schedule.tiers import (
    AUTO,
    Tier,
    classify,
    decline,
    is_watched,
    per_minute,
    tier_option,
    with_demand_of_readers,
)
from headrace.settings import Settings


def tiers_in_force(
    tables: Mapping[str, StreamTable], settings: Settings, memory: ScheduleState
) -> tuple[TierInForce, ...]:
    """Return the tier of every table that is watched for reads, and the next if nobody reads it.

    A table waits for those that read it: its tier changes when theirs allow it.
    """
    now = tiers_of(tables, settings, memory)
    automatic = {name for name, table in tables.items() if tier_option(table, settings) == AUTO}
    watched = [
        name
        for name, table in tables.items()
        if is_watched(table, settings) and name in memory.reads
    ]
    own = {name: now[name] for name in tables if name not in automatic}
    own |= dict.fromkeys(automatic, Tier.HOT)
    own |= {name: classify(memory.reads[name]) for name in watched if name in automatic}
    declines = {name: decline(memory.reads[name]) for name in watched if name in automatic}
    reads = {name: table.inputs for name, table in tables.items()}
    changes: dict[str, tuple[Tier, datetime]] = {}
    for moment in sorted({at for line in declines.values() for at, _ in line}):
        later = {name: tier for name, line in declines.items() for at, tier in line if at <= moment}
        demanded_tiers = with_demand_of_readers(own | later, automatic, reads)
        for name in declines.keys() - changes.keys():
            if demanded_tiers[name] is not now[name]:
                changes[name] = (demanded_tiers[name], moment)
    return tuple(
        TierInForce(
            name, now[name], per_minute(memory.reads[name]), *changes.get(name, (None, None))
        )
        for name in watched
    )
