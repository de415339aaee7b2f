"""What stream tables ask of sources: whether it can be, known before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.capture.recopy_reasons import captured_part
from headrace.capture.wal.availability import impossible
from headrace.catalog import State
from headrace.catalog.records import Source
from headrace.engine import HOME, Engine
from headrace.errors import UserError
from headrace.ingest.append_only import is_declared
from headrace.ingest.modes import record_modes
from headrace.ingest.requested_modes import require_agreement, wished_mode
from headrace.settings import Settings
from headrace.source.connection import Database
from headrace.source.introspect import inspect


def check_modes(engine: Engine, before: State, after: State) -> None:
    """Refuse what leads from one state to the other if sources could not be captured as asked.

    Only sources that shall be read from the log, and so far were not to be, are looked at: one
    that fell back to triggers keeps nobody from altering what reads it.
    """
    require_agreement(after)
    settings = engine.settings(after)
    wanted = [one for one in after.sources if _comes_to_wal(one, before, after, settings)]
    for number in sorted({source.database for source in wanted}):
        ours = [source for source in wanted if source.database == number]
        _require_possible(engine, after, number, ours, settings)


def declare_anew(engine: Engine, before: State, fence: int) -> None:
    """Forget that sources lost rows which nobody declared append-only before, and somebody does."""
    state = engine.catalog.state()
    renewed = [
        replace(source, shrunk_at=None)
        for source in state.sources
        if source.shrunk_at is not None
        and is_declared(state, source)
        and not is_declared(before, source)
    ]
    if renewed:
        record_modes(engine, state, renewed, fence)


def _comes_to_wal(source: Source, before: State, after: State, settings: Settings) -> bool:
    if wished_mode(after, settings, source) != "wal":
        return False
    known = before.source(source.database, source.oid)
    return known is None or wished_mode(before, settings, known) != "wal"


def _require_possible(
    engine: Engine, state: State, number: int, sources: Sequence[Source], settings: Settings
) -> None:
    known = next((one for one in state.databases if one.id == number), None)
    slot = known.following.slot if known is not None and known.following is not None else ""
    database = _database(engine, state, number)
    with database.session() as connection:
        there = inspect(connection, [source.oid for source in sources])
        tables = [captured_part(one, there[one.oid]) for one in sources if one.oid in there]
        found = impossible(
            connection,
            tables,
            database.version,
            slot,
            may_change=settings.auto_replica_identity,
        )
    for source in sources:
        obstacle = found.get(source.oid)
        if obstacle is not None:
            raise UserError(
                "invalid-option",
                f"{state.called(source)} cannot be captured with cdc_mode wal: {obstacle.reason}",
                hint=f"{obstacle.remedy} With cdc_mode auto it is captured by triggers meanwhile.",
            )


def _database(engine: Engine, state: State, number: int) -> Database:
    """The home database is there before it is recorded."""
    return engine.database if number == HOME else engine.source_database(state.database(number))
