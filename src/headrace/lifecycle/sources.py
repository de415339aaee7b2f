"""Sources that cannot stay as they are: those nothing reads any more, and those with lost logs."""

from __future__ import annotations

import logging

from headrace.capture.setup import tear_down
from headrace.catalog import Change, State
from headrace.catalog.records import Status
from headrace.engine import Engine
from headrace.engine.steps import ForgetSource, RollBack, TearDownCapture
from headrace.errors import HeadraceError, NeedsReinit
from headrace.ingest.unfollow import unfollow
from headrace.lifecycle.logs import drop_unowned_logs
from headrace.publish.reindex import tidy

logger = logging.getLogger(__name__)


def remove_idle_sources(engine: Engine, fence: int, *, patient: bool = True) -> None:
    """Take down every source without readers; their logs, and all that nobody owns, go with them.

    Repeating it after a crash finishes the work. A source that cannot go now, because others hold
    its table or a right is missing, stays recorded until this is done again; that is told and not
    raised, because what made the source idle is done already.
    """
    state = engine.catalog.state()
    for source in state.sources:
        if state.readers(source.relation):
            continue
        try:
            database = engine.source_database(state.database(source.database))
            if state.database(source.database).following is not None:
                unfollow(engine, engine.catalog.state(), source.database, [source.oid], fence)
            with engine.step(TearDownCapture(source.relation)):
                tear_down(database, source.oid, patient=patient)
        except HeadraceError as error:
            logger.warning(
                "capture could not be taken away",
                extra={
                    "source": state.called(source),
                    "code": error.code,
                    "error": error.message,
                },
            )
            continue
        with engine.step(ForgetSource(source.relation)):
            engine.catalog.commit(Change(remove=(source,)), fence=fence)
    drop_unowned_logs(engine, fence)


def finish_removals(engine: Engine, fence: int) -> None:
    """What recovery does besides the logs: a short try, for it comes before work of all kinds."""
    tidy(engine.database, engine.catalog.state().stream_tables)
    remove_idle_sources(engine, fence, patient=False)


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
