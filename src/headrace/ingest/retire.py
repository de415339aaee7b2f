"""Removing the capture mechanism that a source has switched away from, after a cut."""

from __future__ import annotations

import logging
import time

from headrace.capture.setup import tear_down
from headrace.catalog import State
from headrace.catalog.records import CaptureMode
from headrace.engine import Engine
from headrace.engine.steps import TearDownCapture
from headrace.errors import HeadraceError
from headrace.ingest.attempts import CaptureAttempts
from headrace.ingest.from_buffer import PendingCut
from headrace.ingest.unfollow import stop_following

# Seconds between two attempts: while an attempt waits for a lock, writers wait behind it.
AGAIN = 30.0

logger = logging.getLogger(__name__)


def retire(engine: Engine, state: State, taking: PendingCut, fence: int) -> State:
    """Drop triggers of sources that are read from the WAL, and stop following those that left it.

    Triggers that cannot be dropped because of a lock are dropped after a later cut: until then they
    fill a buffer that every cut empties.
    """
    database, attempts = taking.cut.database, engine.part(CaptureAttempts)
    for source in state.sources:
        by_wal = source.database == taking.number and source.mode is CaptureMode.WAL
        if not by_wal or source.oid not in taking.cut.acknowledged:
            continue
        now = time.monotonic()
        if now - attempts.torn_down_at.get(source.relation, -AGAIN) < AGAIN:
            continue
        attempts.torn_down_at[source.relation] = now
        try:
            with engine.step(TearDownCapture(source.relation)):
                tear_down(database, source.oid, patient=False, for_good=False)
        except HeadraceError as error:
            logger.info("triggers stay for now", extra={"error": error.message})
    current = {source.relation: source for source in state.sources}
    left = [
        before
        for before in taking.sources
        if before.followed and not current[before.relation].followed
    ]
    for source in left:
        attempts.followed_at[source.relation] = time.monotonic()
    if left:
        oids = [source.oid for source in left]
        return stop_following(engine, state, taking.number, oids, fence)
    return state
