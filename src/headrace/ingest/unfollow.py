"""Removing sources that are not read from the WAL any more from the publication, and the slot."""

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
    """Do what `unfollow` does, but only log an error: nothing relies on it."""
    try:
        return unfollow(engine, state, number, oids, fence)
    except HeadraceError as error:
        logger.warning(
            "a publication or slot could not be taken away",
            extra={"code": error.code, "error": error.message},
        )
        return engine.catalog.state()


def unfollow(engine: Engine, state: State, number: int, oids: Sequence[int], fence: int) -> State:
    """Remove sources from the publication; with the last, drop the slot, then the publication.

    Repeating it does no harm. Tables that were published and never recorded are removed with the
    last source, too.
    """
    record = state.database(number)
    if record.following is None:
        return state
    database = engine.source_database(record)
    sources = [source for source in state.sources if source.database == number]
    last = not any(source.followed is not None and source.oid not in oids for source in sources)
    gone = {*oids, *(source.oid for source in sources if last)}
    with engine.step(StopFollowing(tuple(s.relation for s in sources if s.oid in gone))):
        if last:
            engine.slot_readers.release(record.following.slot)
            drop(database, record.following.slot)
        remove_from_publication(database, gone)
        if last:
            with engine.changing(state) as current:
                unfollowed = replace(current.database(number), following=None)
                engine.catalog.commit(Change(put=(unfollowed,)), fence=fence)
    return engine.catalog.state()


def is_left_behind(state: State, number: int) -> bool:
    """Return whether a slot is recorded that no source needs, as a crash may leave it."""
    followed = any(s.followed is not None for s in state.sources if s.database == number)
    return state.database(number).following is not None and not followed
