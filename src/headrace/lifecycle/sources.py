"""Sources that cannot stay as they are: those nothing reads any more, and those with lost logs."""

from __future__ import annotations

from headrace.capture.setup import tear_down
from headrace.catalog import Change, State
from headrace.catalog.records import Status
from headrace.engine import HOME, Engine
from headrace.errors import NeedsReinit
from headrace.lifecycle.logs import drop_unowned_logs
from headrace.steps import ForgetSource, RollBack, TearDownCapture


def remove_idle_sources(engine: Engine, fence: int) -> None:
    """Take down every source without readers; their logs, and all that nobody owns, go with them.

    Repeating it after a crash finishes the work.
    """
    state = engine.catalog.state()
    for source in state.sources:
        if source.database != HOME or state.readers(source.relation):
            continue
        with engine.step(TearDownCapture(source.relation)):
            tear_down(engine.database, source.oid)
        with engine.step(ForgetSource(source.relation)):
            engine.catalog.commit(Change(remove=(source,)), fence=fence)
    drop_unowned_logs(engine, fence)


def damaged_sources(engine: Engine, state: State) -> frozenset[str]:
    """The suspended sources whose logs do not hold what the catalog says."""
    damaged = set()
    for source in state.sources:
        if source.status is not Status.SUSPENDED:
            continue
        relation = state.relation(source.relation)
        try:
            with engine.step(RollBack(relation.id)):
                engine.store.rollback(relation.id, relation.pin)
        except NeedsReinit:
            damaged.add(relation.id)
    return frozenset(damaged)
