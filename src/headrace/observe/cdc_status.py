"""How the changes of every source are captured, how far behind that is, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from headrace.capture.observe import Observed, observe
from headrace.capture.wal.slot import SlotStatus, lsn_to_text
from headrace.capture.wal.slot_probe import LEVELS, Ceiling, Level
from headrace.catalog import State
from headrace.catalog.records import CaptureMode, DatabaseRecord, Source, Status
from headrace.engine import Engine
from headrace.errors import HeadraceError
from headrace.ingest.append_only import is_declared, reverted
from headrace.ingest.from_wal import slot_ceiling
from headrace.ingest.requested_modes import RequestedMode, requested_mode_of
from headrace.settings import Settings

MEGABYTE = 2**20
UNBOUNDED = "without Headrace slot {} could fill the server's disk: set max_slot_wal_keep_size"


@dataclass(frozen=True)
class SourceHealth:
    """One source. `requested_mode` is the mode that was requested, `mode` the one that it has.

    `lag_bytes` is the size of its change buffer, or of the WAL that the slot of its database
    retains; `lag` the time since the latest cut. `position` is that of the slot. None is unknown.
    `alert` says why the level is not fine. `slot` and `identity` are set in WAL mode and in
    transition to it: with identity `full` the WAL has whole old rows, with `key` their keys.
    `append_only` is set if it was declared. `answers` says whether its database could be queried.
    """

    source: str
    database: str
    mode: str
    requested_mode: RequestedMode
    mode_reason: str | None
    status: str
    lag_bytes: int | None
    lag: timedelta | None
    position: str | None
    level: Level
    alert: str | None
    slot: str | None = None
    identity: str | None = None
    append_only: Literal["declared", "reverted"] | None = None
    answers: bool = True


def cdc_health(engine: Engine, state: State, now: datetime) -> tuple[SourceHealth, ...]:
    """Return the health of every source; a database that does not answer is an alert."""
    health: list[SourceHealth] = []
    settings = engine.settings(state)
    for database in state.databases:
        sources = [source for source in state.sources if source.database == database.id]
        observed = _observe(engine, database, sources, settings) if sources else Observed()
        health += [
            health_of(state, settings, database, source, observed, now=now) for source in sources
        ]
    return tuple(health)


def _observe(
    engine: Engine, known: DatabaseRecord, sources: list[Source], settings: Settings
) -> Observed | HeadraceError:
    followed = {
        source.oid: source.followed
        for source in sources
        if source.mode is CaptureMode.WAL and source.followed is not None
    }
    try:
        database = engine.source_database(known)
        return observe(
            database, sources, followed, known.following, slot_ceiling(settings), known.snapshot
        )
    except HeadraceError as error:
        return error


def buffer_ceiling(settings: Settings) -> Ceiling:
    """Return the ceiling of the size of a change buffer: half of its limit is a warning."""
    limit = settings.max_buffer_mb * MEGABYTE
    return Ceiling(limit // 2, limit)


def buffer_level(settings: Settings, size: int) -> tuple[Level, str]:
    """Return the level of a change buffer of `size` bytes, and a text about it."""
    text = f"the change buffer has {_megabytes(size)} of {settings.max_buffer_mb} MB"
    return buffer_ceiling(settings).level(size), text


def slot_level(settings: Settings, name: str, slot: SlotStatus | None) -> tuple[Level, str]:
    """Return the level of a slot by the WAL that it retains, and a text about it."""
    lag, safe = (0, None) if slot is None else (slot.lag or 0, slot.safe)
    text = f"replication slot {name} holds back {_megabytes(lag)} of log"
    if safe is not None:
        text += f"; the server lets it hold back {_megabytes(safe)} more"
    return slot_ceiling(settings).level(lag, safe), text


def health_of(
    state: State,
    settings: Settings,
    database: DatabaseRecord,
    source: Source,
    seen: Observed | HeadraceError,
    *,
    now: datetime,
) -> SourceHealth:
    """Return the health of a source, judged by what was observed of it (pure)."""
    observed = Observed() if isinstance(seen, HeadraceError) else seen
    by_wal = source.mode is CaptureMode.WAL
    slot = observed.slot if source.mode is not CaptureMode.TRIGGER else None
    lag_bytes = observed.buffers.get(source.oid)
    if by_wal:
        lag_bytes = None if slot is None else slot.lag
    requested_mode = requested_mode_of(state, settings, source)
    alerts = _alerts(settings, database, source, observed, requested_mode)
    append_only = _append_only(state, source)
    if append_only == "reverted":
        alerts.append(("warning", reverted(source)))
    if isinstance(seen, HeadraceError):
        alerts = [("critical", f"database {database.alias}: {seen.message}")]
    following = database.following
    # Of several that are equally bad, the first.
    worst = max(alerts, key=lambda alert: LEVELS.index(alert[0]), default=None)
    return SourceHealth(
        state.called(source),
        database.alias,
        source.mode.value,
        requested_mode,
        source.mode_reason,
        source.status.value,
        lag_bytes,
        None if database.cut_at is None else max(now - database.cut_at, timedelta(0)),
        None if slot is None or slot.confirmed is None else lsn_to_text(slot.confirmed),
        "fine" if worst is None else worst[0],
        None if worst is None else worst[1],
        None if source.followed is None or following is None else following.slot,
        None if source.followed is None else source.followed.kind,
        append_only,
        answers=not isinstance(seen, HeadraceError),
    )


def _append_only(state: State, source: Source) -> Literal["declared", "reverted"] | None:
    if not is_declared(state, source):
        return None
    return "declared" if source.shrunk_at is None else "reverted"


def _alerts(
    settings: Settings,
    database: DatabaseRecord,
    source: Source,
    seen: Observed,
    requested_mode: RequestedMode,
) -> list[tuple[Level, str]]:
    """Return all alerts of a source, the more certain first."""
    alerts: list[tuple[Level, str]] = []
    if database.failing_since is not None:
        since = database.failing_since.isoformat(" ", "seconds")
        alerts.append(("critical", f"no changes are taken in since {since}: {database.failure}"))
    if source.status in (Status.SUSPENDED, Status.ERROR):
        alerts.append(("critical", source.reason or "capture is suspended"))
    if source.oid in seen.leaving:
        alerts.append(("critical", f"goes back to triggers: {seen.leaving[source.oid]}"))
    if source.oid in seen.recopy_reasons and source.status is Status.ACTIVE:
        alerts.append(("warning", f"will be copied again: {seen.recopy_reasons[source.oid]}"))
    if source.mode is not CaptureMode.TRIGGER and database.following is not None:
        name = database.following.slot
        alerts.append(slot_level(settings, name, seen.slot))
        if seen.slot is not None and not seen.slot.bounded:
            alerts.append(("warning", UNBOUNDED.format(name)))
    if source.mode is not CaptureMode.WAL:
        alerts.append(buffer_level(settings, seen.buffers.get(source.oid, 0)))
    if source.mode is CaptureMode.WAL and source.oid in seen.buffers:
        alerts.append(("warning", "read from the log, and its triggers could not be dropped yet"))
    if (
        requested_mode == "wal"
        and source.mode is CaptureMode.TRIGGER
        and source.mode_reason is not None
    ):
        alerts.append(("warning", f"captured by triggers, not from the log: {source.mode_reason}"))
    return [alert for alert in alerts if alert[0] != "fine"]


def _megabytes(size: int) -> str:
    return f"{size // MEGABYTE:,} MB"
