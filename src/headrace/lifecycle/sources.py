"""Sources that nothing reads any more are taken down: triggers, buffer, log and record."""

from __future__ import annotations

from headrace.capture.setup import tear_down
from headrace.catalog import Change
from headrace.engine import HOME, Engine
from headrace.steps import DropLog, ForgetSource, TearDownCapture


def remove_idle_sources(engine: Engine, fence: int) -> None:
    """Take down every source without readers. Repeating it after a crash finishes the work."""
    state = engine.catalog.state()
    for source in state.sources:
        if source.database != HOME or state.readers(source.relation):
            continue
        relation = state.relation(source.relation)
        with engine.step(TearDownCapture(relation.id)):
            tear_down(engine.database, source.oid)
        with engine.step(ForgetSource(relation.id)):
            engine.catalog.commit(Change(remove=(source, relation)), fence=fence)
        with engine.step(DropLog(relation.id)):
            engine.store.drop(relation.id)
