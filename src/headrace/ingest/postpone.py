"""Sources that cannot be taken in are left out of a cut: only those that read them wait."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog import Change, State, Transaction
from headrace.catalog.records import Source
from headrace.engine import Engine
from headrace.engine.steps import Postpone
from headrace.errors import Transient, UserError
from headrace.ingest.from_buffer import stopped_or_freed, suspended
from headrace.ingest.modes import TRIGGER_REQUESTED, announce_change


def leave_out(
    engine: Engine,
    state: State,
    unusable: Mapping[Source, Transient | UserError],
    fallen: Mapping[int, str],
    asked: frozenset[str],
    fence: int,
) -> State:
    """Suspend the sources, with the reason; a refresh of one of their readers copies them.

    Sources that were `asked` for (relation ids) raise their error. Sources (oids) that have
    `fallen` only because triggers are requested are read from the WAL for a while longer.
    """
    for source, error in unusable.items():
        if source.relation in asked:
            raise error
    waiting = {s: error for s, error in unusable.items() if fallen.get(s.oid) != TRIGGER_REQUESTED}
    if not waiting:
        return state
    taken = tuple(
        suspended(state, source, state.relation(source.relation), error)
        for source, error in waiting.items()
    )

    def apply(transaction: Transaction) -> None:
        for before, contribution in zip(waiting, taken, strict=True):
            if before.mode is not contribution.source.mode:
                announce_change(transaction, state, before, contribution.source)

    with (
        engine.step(Postpone(tuple(source.relation for source in waiting))),
        engine.changing(state) as current,
    ):
        records = (contribution.source for contribution in taken)
        change = Change(put=(*records, *stopped_or_freed(current, taken)))
        engine.catalog.commit(change, fence=fence, apply=apply)
    return engine.catalog.state()
