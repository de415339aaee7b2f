"""Keeping logs short: what no reader asks for any more is summed up."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from headrace.catalog import Change, State
from headrace.catalog.records import taken_in
from headrace.engine import Engine
from headrace.errors import HeadraceError
from headrace.steps import Compact

logger = logging.getLogger(__name__)


def oldest_needed(state: State, relation: str) -> int:
    """The oldest epoch that some reader may still need as its "before": its own frontier."""
    pinned = state.relation(relation).pin.epoch
    readers = state.readers(relation)
    return min([pinned, *(taken_in(reader, relation) for reader in readers)])


def compact(engine: Engine, relations: Iterable[str], fence: int) -> None:
    """Sum up old epochs of these relations where that is worth it, and pin the outcome.

    The work before it is published already, so a failure here is told and not raised; whoever
    writes next finds the logs as they are.
    """
    names = tuple(relations)
    try:
        with engine.step(Compact(names)):
            _compact(engine, names, fence)
    except HeadraceError as error:
        engine.distrust()
        logger.warning("compaction failed", extra={"code": error.code, "error": error.message})


def _compact(engine: Engine, names: tuple[str, ...], fence: int) -> None:
    state = engine.catalog.state()
    moved = []
    for name in names:
        relation = state.relation(name)
        pin = engine.store.compact(name, relation.pin, oldest_needed(state, name))
        if pin != relation.pin:
            moved.append(replace(relation, pin=pin))
    if moved:
        engine.catalog.commit(Change(put=tuple(moved)), fence=fence)
