"""Modes of capture, made durable and announced to listeners."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.catalog import Change, Record, State, Transaction
from headrace.catalog.alert import alert_source
from headrace.catalog.records import CaptureMode, Source
from headrace.catalog.transition_notice import announce_transition
from headrace.engine import Engine
from headrace.engine.steps import RecordModes

# Why a source is captured by triggers that could be read from the WAL.
TRIGGER_REQUESTED = "cdc_mode is trigger"


def record_modes(
    engine: Engine, state: State, sources: Sequence[Source], fence: int, *more: Record
) -> State:
    """Make modes of capture durable, and announce those that have changed."""
    before = {source.relation: source for source in state.sources}

    def apply(transaction: Transaction) -> None:
        for source in sources:
            if before[source.relation].mode is not source.mode:
                announce_change(transaction, state, before[source.relation], source)

    names = tuple(source.relation for source in sources)
    with engine.step(RecordModes(names)), engine.changing(state):
        engine.catalog.commit(Change(put=(*sources, *more)), fence=fence, apply=apply)
    return engine.catalog.state()


def announce_change(transaction: Transaction, state: State, before: Source, after: Source) -> None:
    """Announce that a source is captured in another mode; send an alert if it fell back."""
    name, following = state.called(after), state.database(after.database).following
    slot = None if following is None else following.slot
    announce_transition(transaction, name, before.mode, after.mode, after.mode_reason, slot)
    if before.mode is CaptureMode.WAL and after.mode_reason != TRIGGER_REQUESTED:
        message = f"captured by triggers again: {after.mode_reason}"
        alert_source(transaction, state.name_parts(after), "fell-back", message)
