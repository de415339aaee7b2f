"""From triggers to the WAL and back: which sources switch, and when they have switched.

    TRIGGER ──publish──▸ TRANSITIONING ──cut──▸ WAL
       ▲                      │                  │
       └──────gives up────────┴────falls back────┘

A source is published first. Transactions that were open then may have written to it unpublished;
once a cut sees no such transaction running, the WAL has all changes that the cut does not contain.
That cut is still taken from the triggers, and from it on the WAL is read: nothing is missed and
nothing taken twice. A source that falls back is copied again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from headrace.capture.snapshot import Snapshot
from headrace.catalog import State
from headrace.catalog.records import CaptureMode, Source, Status
from headrace.engine import Engine
from headrace.ingest.attempts import CaptureAttempts
from headrace.ingest.modes import TRIGGER_REQUESTED, record_modes
from headrace.ingest.publishing import publish_sources
from headrace.ingest.requested_modes import requested_mode_of
from headrace.ingest.unfollow import is_left_behind, stop_following
from headrace.settings import Settings
from headrace.source.connection import Database
from headrace.source.faults import translated

# Seconds after which a source that could not be followed is checked again.
AGAIN = 60.0


def begin_transitions(engine: Engine, state: State, number: int, fence: int) -> State:
    """Publish the sources of a database that shall be followed; take back those that took too long.

    An obstacle is recorded with the source, and the attempt is repeated later.
    """
    settings = engine.settings(state)
    if is_left_behind(state, number):
        state = stop_following(engine, state, number, (), fence)
    sources = [source for source in state.sources if source.database == number]
    back = {s: why for s in sources if (why := _reason_to_give_up(state, settings, s)) is not None}
    if back:
        state = give_up(engine, state, number, back, fence)
    candidates = [
        source
        for source in sources
        if source.mode is CaptureMode.TRIGGER
        and source.status is Status.ACTIVE
        and source not in back
        and requested_mode_of(state, settings, source) != "trigger"
        and _is_time(engine, source)
    ]
    return publish_sources(engine, state, number, candidates, fence) if candidates else state


def completes(source: Source, snapshot: str) -> bool:
    """Return whether the WAL has all changes of a source that a cut with this snapshot lacks."""
    followed = source.followed
    return (
        source.mode is CaptureMode.TRANSITIONING
        and followed is not None
        and Snapshot.read(snapshot).xmin >= followed.published
    )


def may_complete(database: Database, sources: Iterable[Source]) -> bool:
    """Return whether a cut that is taken now would complete a transition."""
    if not any(source.mode is CaptureMode.TRANSITIONING for source in sources):
        return False
    with database.session() as connection, translated():
        row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
    assert row is not None
    return any(completes(source, row[0]) for source in sources)


def not_requested(state: State, settings: Settings, number: int) -> dict[int, str]:
    """Return the sources, by oid, that are read from the WAL although triggers are requested."""
    return {
        source.oid: TRIGGER_REQUESTED
        for source in state.sources
        if source.database == number
        and source.mode is CaptureMode.WAL
        and requested_mode_of(state, settings, source) == "trigger"
    }


def give_up(
    engine: Engine, state: State, number: int, sources: Mapping[Source, str], fence: int
) -> State:
    """Have sources in transition stay with their triggers, each for its reason."""
    records = [
        replace(source, mode=CaptureMode.TRIGGER, mode_reason=reason, followed=None)
        for source, reason in sources.items()
    ]
    state = record_modes(engine, state, records, fence)
    return stop_following(engine, state, number, [record.oid for record in records], fence)


def _reason_to_give_up(state: State, settings: Settings, source: Source) -> str | None:
    if source.mode is not CaptureMode.TRANSITIONING or source.followed is None:
        return None
    if requested_mode_of(state, settings, source) == "trigger":
        return TRIGGER_REQUESTED
    limit = timedelta(seconds=settings.wal_transition_timeout)
    if datetime.now(UTC) - source.followed.since > limit:
        return (
            f"transactions that were open when it was published did not end in"
            f" {settings.wal_transition_timeout:g} s"
        )
    return None


def _is_time(engine: Engine, source: Source) -> bool:
    """Return whether a source was not checked just now; it then counts as checked."""
    now, followed_at = time.monotonic(), engine.part(CaptureAttempts).followed_at
    if now - followed_at.get(source.relation, -AGAIN) < AGAIN:
        return False
    followed_at[source.relation] = now
    return True
