"""Sources that are no longer read from the log leave the publication; with the last, the slot."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from headrace.capture.wal.publication import unpublish
from headrace.capture.wal.slot import drop
from headrace.catalog import Change, State
from headrace.engine import Engine
from headrace.errors import HeadraceError
from headrace.steps import StopFollowing

logger = logging.getLogger(__name__)


def stop_following(
    engine: Engine, state: State, number: int, oids: Sequence[int], fence: int
) -> State:
    """What `unfollow` does; what cannot be done now is told, and nothing relies on it."""
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

    Repeating it does no harm.
    """
    record = state.database(number)
    if record.following is None:
        return state
    database = engine.source_database(record)
    staying = [
        source
        for source in state.sources
        if source.database == number and source.followed is not None and source.oid not in oids
    ]
    gone = tuple(s.relation for s in state.sources if s.database == number and s.oid in oids)
    with engine.step(StopFollowing(gone)):
        if not staying:
            drop(database, record.following.slot)
        unpublish(database, oids)
    if not staying:
        with engine.changing(state):
            change = Change(put=(replace(record, following=None),))
            engine.catalog.commit(change, fence=fence)
    return engine.catalog.state()
