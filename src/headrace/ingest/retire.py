"""After a cut: what captured a source before goes, now that something else does."""

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
from headrace.ingest.from_buffer import Taking
from headrace.ingest.unfollow import stop_following

# Seconds between two tries: while one waits for a lock, writers wait behind it.
AGAIN = 30.0

logger = logging.getLogger(__name__)


def retire(engine: Engine, state: State, taking: Taking, fence: int) -> State:
    """Take away triggers of sources that are read from the log, and stop following those that left.

    What cannot go now, because somebody holds a lock, goes after a later cut: until then the
    triggers fill a buffer that every cut empties.
    """
    database, attempts = taking.cut.database, engine.part(CaptureAttempts)
    for source in state.sources:
        by_log = source.database == taking.number and source.mode is CaptureMode.WAL
        if not by_log or source.oid not in taking.cut.acknowledged:
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
    known = {source.relation: source for source in state.sources}
    left = [one for one in taking.sources if one.followed and not known[one.relation].followed]
    for source in left:
        attempts.followed_at[source.relation] = time.monotonic()
    if left:
        oids = [source.oid for source in left]
        return stop_following(engine, state, taking.number, oids, fence)
    return state
