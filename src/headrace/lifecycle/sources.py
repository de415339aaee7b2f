"""Sources that nothing reads any more are taken down: triggers, buffer, log and record."""

from __future__ import annotations

from headrace.capture.setup import tear_down
from headrace.catalog import Change
from headrace.engine import HOME, Engine


def remove_idle_sources(engine: Engine, fence: int) -> None:
    """Take down every source without readers. Repeating it after a crash finishes the work."""
    state = engine.catalog.state()
    for source in state.sources:
        if source.database != HOME or state.readers(source.relation):
            continue
        tear_down(engine.database, source.oid)
        relation = state.relation(source.relation)
        engine.catalog.commit(Change(remove=(source, relation)), fence=fence)
        engine.store.drop(relation.id)
