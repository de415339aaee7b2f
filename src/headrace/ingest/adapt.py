"""Bring capture of existing sources to the settings: limit and persistence of their buffers."""

from __future__ import annotations

import logging
import math
import time

from headrace.capture.adapt import adapt
from headrace.capture.statements import CaptureOptions
from headrace.catalog import State
from headrace.catalog.records import CaptureMode, Source, Status
from headrace.engine import Engine
from headrace.errors import HeadraceError
from headrace.ingest.attempts import CaptureAttempts
from headrace.settings import Settings

# Seconds between two attempts: while an attempt waits for a lock, writers wait behind it.
AGAIN = 30.0

logger = logging.getLogger(__name__)


def adapt_capture(engine: Engine, state: State, number: int) -> None:
    """Convert the buffers of a database that differ from the settings, after a cut.

    Buffers that cannot be converted because of a lock are retried after a later cut. The database
    is queried only if settings or sources have changed since the last attempt, or for a retry.
    """
    options, sources = capture_options(engine.settings(state)), _buffered(state, number)
    target = (options, frozenset(source.relation for source in sources))
    adapted = engine.part(CaptureAttempts).adapted
    before, again_at = adapted.get(number, (None, 0.0))
    if not sources or (before == target and time.monotonic() < again_at):
        return
    try:
        database = engine.source_database(state.database(number))
        results = adapt(database, sources, options, patient=False).values()
        failures = [error for error in results if error is not None]
    except HeadraceError as error:
        failures = [error]
    for failure in failures:
        logger.info("a change buffer stays as it is for now", extra={"error": failure.message})
    adapted[number] = (target, time.monotonic() + AGAIN if failures else math.inf)


def convert_buffers(engine: Engine) -> tuple[str, ...]:
    """Convert all change buffers that differ from the settings, and return their sources.

    Raise the first failure after the others were converted.
    """
    with engine.writing():
        state = engine.catalog.state()
        options = capture_options(engine.settings(state))
        converted: list[str] = []
        failures: list[HeadraceError] = []
        for database in state.databases:
            sources = {source.oid: source for source in _buffered(state, database.id)}
            if not sources:
                continue
            done = adapt(engine.source_database(database), sources.values(), options, patient=True)
            failures += [error for error in done.values() if error is not None]
            converted += [state.called(sources[oid]) for oid, error in done.items() if not error]
    if failures:
        raise failures[0]
    return tuple(sorted(converted))


def capture_options(settings: Settings) -> CaptureOptions:
    """Return the options of capture that the settings give."""
    return CaptureOptions(settings.max_buffer_mb, settings.unlogged_buffers)


def _buffered(state: State, number: int) -> tuple[Source, ...]:
    """Return the sources of a database that triggers capture, without those not yet set up."""
    return tuple(
        source
        for source in state.sources
        if source.database == number
        and source.mode is not CaptureMode.WAL
        and source.status is not Status.INITIALIZING
    )
