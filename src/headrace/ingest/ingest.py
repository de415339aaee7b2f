"""Ingest: a cut of a source database becomes an epoch of its sources' relations.

A cut is taken when there is something new. What cannot be continued is found out in it, copied
anew in the next one, and everything else goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from headrace.capture.changes import pending
from headrace.capture.cut import OpenCut, flush_if_behind, open_cut
from headrace.capture.dirt import captured_part
from headrace.capture.setup import set_up
from headrace.catalog import Change, State
from headrace.catalog.records import CaptureMode, Source, Status
from headrace.engine import Engine
from headrace.errors import HeadraceError, Transient
from headrace.ingest.follow import (
    advance_quietly,
    followed_of,
    leaving,
    log_has_news,
    read_changes,
)
from headrace.ingest.modes import UNWISHED
from headrace.ingest.retire import retire
from headrace.ingest.take import Taking, stopped_or_freed, suspended, take
from headrace.ingest.transition import begin_transitions, may_complete, unwished
from headrace.source.connection import Database as Connections
from headrace.source.introspect import inspect
from headrace.steps import Postpone, SetUpCapture, TakeCut

ATTEMPTS = 5


def ingest(
    engine: Engine,
    state: State,
    fence: int,
    *,
    needed: frozenset[str] | None = None,
    retry: frozenset[str] = frozenset(),
    inside: Callable[[OpenCut, State], None] | None = None,
) -> State:
    """Take in what changed in databases since their last cuts; the catalog's state afterwards.

    Databases are those of the relations in `needed`, cut one after the other; or all with sources.
    Sources that are INITIALIZING, that were rewritten behind their triggers, or that are
    SUSPENDED and named in `retry` (relation ids) are copied anew. With nothing new, nothing is
    written and no epoch is used. `inside` is called while a cut is still open, and makes one be
    taken in any case.
    """
    for number in databases_of(state, needed):
        state = ingest_database(engine, state, number, fence, retry=retry, inside=inside)
    return state


def databases_of(state: State, needed: frozenset[str] | None = None) -> tuple[int, ...]:
    """The databases with sources, or with those sources that are needed."""
    wanted = {s.database for s in state.sources if needed is None or s.relation in needed}
    return tuple(sorted(wanted))


def ingest_database(
    engine: Engine,
    state: State,
    number: int,
    fence: int,
    *,
    retry: frozenset[str] = frozenset(),
    inside: Callable[[OpenCut, State], None] | None = None,
) -> State:
    """What `ingest` does, for one database."""
    state = begin_transitions(engine, state, number, fence)
    settings = engine.settings(state)
    database = engine.source_database(state.database(number))
    sources = sources_in(state, number)
    fallen = unwished(state, settings, number)
    copies = frozenset({*fallen, *(s.oid for s in sources if _wants_copy(s, retry))})
    known = state.database(number)
    for _ in range(ATTEMPTS):
        sources = sources_in(state, number)
        if not copies and inside is None and not has_news(engine, state, number, sources):
            return advance_quietly(engine, state, number, fence)
        taking = tuple(s for s in sources if s.oid in copies or s.status is Status.ACTIVE)
        followed = followed_of(taking, fallen)
        taken: Taking | None = None
        try:
            mended = tuple(s for s in taking if s.oid in copies and s.oid not in followed)
            busy = _mend_capture(engine, state, mended, database)
            if busy:
                # A writer keeps tables busy: only those that read them wait.
                waiting = {s: why for s, why in busy.items() if fallen.get(s.oid) != UNWISHED}
                state = _postpone_all(engine, state, waiting, retry, fence)
                copies -= {source.oid for source in busy}
                fallen = {oid: why for oid, why in fallen.items() if oid in copies}
                continue
            # Where everything is copied anew there is nothing to continue.
            going_on = any(source.oid not in copies for source in taking)
            previous = known.snapshot if going_on else None
            with open_cut(
                database,
                taking,
                lock=copies,
                followed=followed,
                previous=previous,
                epoch=known.epoch,
            ) as cut:
                rewritten = frozenset(cut.dirty) - copies
                look = leaving(state, number, cut, taking, fallen, settings)
                if not rewritten and not look.leaving:
                    with read_changes(engine, state, number, cut, taking, copies) as log:
                        rewritten, look = log.too_large, replace(look, leaving=log.leaving)
                        if not rewritten and not log.leaving:
                            taken = Taking(
                                number, cut, taking, copies, fallen, look.ready, look.stuck, log
                            )
                            with engine.step(TakeCut(tuple(s.relation for s in taking))):
                                state = take(engine, state, taken, fence)
                            if inside is not None:
                                inside(cut, state)
            if taken is not None:
                return retire(engine, state, taken, fence)
            # Tables to be copied must be locked before the snapshot is taken: once more.
            copies |= rewritten | frozenset(look.leaving)
            fallen |= look.leaving
        except Transient as error:
            others = tuple(s for s in taking if s.oid in copies and s.relation not in retry)
            if error.code != "source-busy" or not others:
                raise
            # A writer keeps tables busy that nobody asked for now: only their readers wait.
            state = _postpone(engine, state, others, error, fence)
            copies -= {source.oid for source in others}
    raise Transient(
        "cut-interrupted",
        "source tables changed shape faster than a cut could be taken",
        hint="Try again when the schema changes are done.",
    )


def has_news(engine: Engine, state: State, number: int, sources: Iterable[Source]) -> bool:
    """Whether a cut would find anything of these, in buffers or log, or complete a transition."""
    known = state.database(number)
    database = engine.source_database(known)
    active = [source for source in sources if source.status is Status.ACTIVE]
    if not active or known.snapshot is None:
        return False
    by_log = [source for source in active if source.mode is CaptureMode.WAL]
    by_triggers = [source for source in active if source.mode is not CaptureMode.WAL]
    settings = engine.settings(state)
    with database.session() as connection:
        if pending(connection, by_triggers, known.snapshot, known.epoch):
            return True
        if by_log:
            flush_if_behind(database)
            if log_has_news(connection, known, by_log, database.version, settings):
                return True
    return may_complete(database, active)


def sources_in(state: State, number: int) -> tuple[Source, ...]:
    """The sources of one database."""
    return tuple(source for source in state.sources if source.database == number)


def _wants_copy(source: Source, retry: frozenset[str]) -> bool:
    suspended = source.status is Status.SUSPENDED and source.relation in retry
    return source.status is Status.INITIALIZING or suspended


def _postpone(
    engine: Engine, state: State, sources: tuple[Source, ...], error: HeadraceError, fence: int
) -> State:
    """Leave sources out of the cut; a refresh of one of their readers copies them."""
    taken = tuple(suspended(state, s, state.relation(s.relation), error) for s in sources)
    records = tuple(one.source for one in taken)
    with (
        engine.step(Postpone(tuple(source.relation for source in sources))),
        engine.changing(state) as current,
    ):
        change = Change(put=(*records, *stopped_or_freed(current, taken)))
        engine.catalog.commit(change, fence=fence)
    return engine.catalog.state()


def _postpone_all(
    engine: Engine,
    state: State,
    busy: Mapping[Source, Transient],
    retry: frozenset[str],
    fence: int,
) -> State:
    """Leave busy sources out; whoever was asked for by name is an error."""
    for source, error in busy.items():
        if source.relation in retry:
            raise error
        state = _postpone(engine, state, (source,), error, fence)
    return state


def _mend_capture(
    engine: Engine, state: State, sources: tuple[Source, ...], database: Connections
) -> dict[Source, Transient]:
    """Triggers and buffers that fit the tables as they are, before the snapshot is taken.

    Those are told that others keep busy.
    """
    with database.session() as connection:
        tables = inspect(connection, [source.oid for source in sources])
    settings = engine.settings(state)
    busy: dict[Source, Transient] = {}
    for source in sources:
        if source.oid not in tables:
            continue
        table = captured_part(source, tables[source.oid])
        try:
            with engine.step(SetUpCapture(source.relation)):
                set_up(
                    database,
                    table,
                    max_buffer_mb=settings.max_buffer_mb,
                    unlogged=settings.unlogged_buffers,
                )
        except Transient as error:
            if error.code != "source-busy":
                raise
            busy[source] = error
    return busy
