"""Sources that are no longer read from the log leave the publication; with the last, the slot."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from headrace.capture.wal.publication import remove_from_publication
from headrace.capture.wal.slot import drop
from headrace.catalog import Change, State
from headrace.engine import Engine
from headrace.engine.steps import StopFollowing
from headrace.errors import HeadraceError

logger = logging.getLogger(__name__)


def stop_following(
    engine: Engine, state: State, number: int, oids: Sequence[int], fence: int
) -> State:
    """Do what `unfollow` does, and log what cannot be done now: nothing relies on it."""
    try:
        return unfollow(engine, state, number, oids, fence)
    except HeadraceError as error:
        logger.warning(
            "a publication or slot could not be taken away",
            extra={"code": error.code, "error": error.message},
        )
        return engine.catalog.state()


def unfollow(engine: Engine, state: State, number: int, oids: Sequence[int], fence: int) -> State:
    """Take sources out of the publication. With the last one the slot goes, then the publication.

    Repeating it does no harm. What was published and never recorded goes with the last one, too.
    """
    record = state.database(number)
    if record.following is None:
        return state
    database = engine.source_database(record)
    ours = [source for source in state.sources if source.database == number]
    last = not any(source.followed is not None and source.oid not in oids for source in ours)
    gone = {*oids, *(source.oid for source in ours if last)}
    with engine.step(StopFollowing(tuple(s.relation for s in ours if s.oid in gone))):
        if last:
            engine.slot_readers.release(record.following.slot)
            drop(database, record.following.slot)
        remove_from_publication(database, gone)
        if last:
            with engine.changing(state) as current:
                known = replace(current.database(number), following=None)
                engine.catalog.commit(Change(put=(known,)), fence=fence)
    return engine.catalog.state()


def is_left_behind(state: State, number: int) -> bool:
    """Whether a slot is recorded that no source needs: whoever made or left it has died."""
    followed = any(s.followed is not None for s in state.sources if s.database == number)
    return state.database(number).following is not None and not followed
