"""Ingest: a cut of a source database becomes an epoch of its sources' relations.

A cut is taken when there are changes. A source that cannot be continued is detected in the cut and
copied again in the next one; all other sources go on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from headrace.capture.busy import SourcesUnusable
from headrace.capture.changes import pending
from headrace.capture.cut import OpenCut, flush_if_behind, open_cut, went_back
from headrace.capture.recopy_reasons import captured_part
from headrace.capture.setup import set_up
from headrace.catalog import State
from headrace.catalog.records import CaptureMode, Source, Status
from headrace.engine import Engine
from headrace.engine.steps import SetUpCapture, TakeCut
from headrace.errors import Transient, UserError
from headrace.ingest.adapt import adapt_capture, capture_options
from headrace.ingest.from_buffer import PendingCut, take
from headrace.ingest.from_wal import (
    advance_quietly,
    followed_of,
    leaving,
    read_changes,
    wal_has_changes,
)
from headrace.ingest.postpone import leave_out
from headrace.ingest.retire import retire
from headrace.ingest.transition import begin_transitions, may_complete, not_requested
from headrace.source.connection import Database as Connections
from headrace.source.introspect import inspect

ATTEMPTS = 5
# Errors that keep one source from being taken in, and no other.
LEFT_OUT = frozenset({"source-locked", "capture-not-set-up", "untrusted-object"})


def ingest(
    engine: Engine,
    state: State,
    fence: int,
    *,
    needed: frozenset[str] | None = None,
    retry: frozenset[str] = frozenset(),
    inside: Callable[[OpenCut, State], None] | None = None,
) -> State:
    """Take in the changes of databases since their last cuts; return the catalog's new state.

    Databases are those of the relations in `needed`, cut one after the other; or all with sources.
    Sources that are INITIALIZING, that were rewritten behind their triggers, or that are
    SUSPENDED and named in `retry` (relation ids) are copied again. With nothing new, nothing is
    written and no epoch is used. `inside` is called while a cut is still open; with it, a cut is
    taken in any case.
    """
    for number in databases_of(state, needed):
        state = ingest_database(engine, state, number, fence, retry=retry, inside=inside)
    return state


def databases_of(state: State, needed: frozenset[str] | None = None) -> tuple[int, ...]:
    """Return the databases with sources, or with those sources that are needed."""
    numbers = {s.database for s in state.sources if needed is None or s.relation in needed}
    return tuple(sorted(numbers))


def ingest_database(
    engine: Engine,
    state: State,
    number: int,
    fence: int,
    *,
    retry: frozenset[str] = frozenset(),
    required: bool = True,
    inside: Callable[[OpenCut, State], None] | None = None,
) -> State:
    """Do what `ingest` does, for one database; sources in `retry` are `required`, or only tried."""
    after = _ingest(engine, state, number, fence, retry, inside, required=required)
    adapt_capture(engine, after, number)
    return after


def _ingest(
    engine: Engine,
    state: State,
    number: int,
    fence: int,
    retry: frozenset[str],
    inside: Callable[[OpenCut, State], None] | None,
    *,
    required: bool,
) -> State:
    state = begin_transitions(engine, state, number, fence)
    fallen = not_requested(state, engine.settings(state), number)
    waiting = (s.oid for s in sources_in(state, number) if _wants_copy(s, retry))
    attempt = CutAttempt(frozenset({*fallen, *waiting}), fallen)
    attempts = 0
    while attempts < ATTEMPTS:
        sources = sources_in(state, number)
        if (
            not attempt.copies
            and inside is None
            and not has_pending_changes(engine, state, number, sources)
        ):
            return advance_quietly(engine, state, number, fence)
        try:
            done = _try(engine, state, number, attempt, fence, inside)
        except SourcesUnusable as error:
            out = {source: error.why[source.oid] for source in sources if source.oid in error.why}
            required_sources = retry if required else frozenset()
            state = leave_out(engine, state, out, attempt.fallen, required_sources, fence)
            # Such a round does not count: there is less to copy after each.
            attempt = attempt.without(error.why)
            continue
        if isinstance(done, State):
            return done
        attempt, attempts = done, attempts + 1
    raise Transient(
        "cut-interrupted",
        "source tables changed shape faster than a cut could be taken",
        hint="Try again when the schema changes are done.",
    )


@dataclass(frozen=True)
class CutAttempt:
    """A cut as it is tried: the sources (oids) to be copied in it.

    Of these, the ones that have `fallen` were read from the WAL so far, and are captured by
    triggers from this cut on, each for a reason.
    """

    copies: frozenset[int]
    fallen: Mapping[int, str]

    def and_copying(self, rewritten: frozenset[int], leaving: Mapping[int, str]) -> CutAttempt:
        """Return the next attempt, after more sources were found that cannot be continued."""
        return CutAttempt(self.copies | rewritten | leaving.keys(), {**self.fallen, **leaving})

    def without(self, oids: Collection[int]) -> CutAttempt:
        fallen = {oid: why for oid, why in self.fallen.items() if oid not in oids}
        return CutAttempt(self.copies.difference(oids), fallen)


def _try(
    engine: Engine,
    state: State,
    number: int,
    attempt: CutAttempt,
    fence: int,
    inside: Callable[[OpenCut, State], None] | None,
) -> State | CutAttempt:
    """Take a cut and return the state; if it finds more to copy, return the next attempt.

    Tables to be copied must be locked before the snapshot is taken, so they need another cut.
    """
    database_record, settings = state.database(number), engine.settings(state)
    database = engine.source_database(database_record)
    copies, fallen = attempt.copies, attempt.fallen
    sources = tuple(
        source
        for source in sources_in(state, number)
        if source.oid in copies or source.status is Status.ACTIVE
    )
    followed = followed_of(sources, fallen)
    mended = tuple(s for s in sources if s.oid in copies and s.oid not in followed)
    _mend_capture(engine, state, mended, database)
    # Where everything is copied there is nothing to continue.
    going_on = any(source.oid not in copies for source in sources)
    with open_cut(
        database,
        sources,
        lock=copies,
        followed=followed,
        previous=database_record.snapshot if going_on else None,
        epoch=database_record.epoch,
    ) as cut:
        outcome = leaving(state, number, cut, sources, fallen, settings)
        rewritten = frozenset(cut.recopy_reasons) - copies
        if rewritten or outcome.leaving:
            return attempt.and_copying(rewritten, outcome.leaving)
        with read_changes(engine, state, number, cut, sources, copies) as wal_changes:
            if wal_changes.too_large or wal_changes.leaving:
                return attempt.and_copying(wal_changes.too_large, wal_changes.leaving)
            taking = PendingCut(
                number, cut, sources, copies, fallen, outcome.ready, outcome.stuck, wal_changes
            )
            with engine.step(TakeCut(tuple(source.relation for source in sources))):
                state = take(engine, state, taking, fence)
            if inside is not None:
                inside(cut, state)
    return retire(engine, state, taking, fence)


def has_pending_changes(
    engine: Engine, state: State, number: int, sources: Iterable[Source]
) -> bool:
    """Return whether a cut would find changes of these, in buffers or WAL, or end a transition.

    Also true if the database was restored to an earlier point, which a cut refuses to continue.
    """
    database_record = state.database(number)
    database = engine.source_database(database_record)
    active = [source for source in sources if source.status is Status.ACTIVE]
    if not active or database_record.snapshot is None:
        return False
    by_wal = [source for source in active if source.mode is CaptureMode.WAL]
    by_triggers = [source for source in active if source.mode is not CaptureMode.WAL]
    settings = engine.settings(state)
    database.require_own_capture()
    with database.session() as connection:
        oids = [source.oid for source in active]
        if went_back(connection, database_record.snapshot, database_record.epoch, oids):
            return True
        if pending(connection, by_triggers, database_record.snapshot, database_record.epoch):
            return True
        if by_wal:
            flush_if_behind(database)
            if wal_has_changes(
                engine, connection, database_record, by_wal, database.version, settings
            ):
                return True
    return may_complete(database, active)


def sources_in(state: State, number: int) -> tuple[Source, ...]:
    """Return the sources of one database."""
    return tuple(source for source in state.sources if source.database == number)


def _wants_copy(source: Source, retry: frozenset[str]) -> bool:
    suspended = source.status is Status.SUSPENDED and source.relation in retry
    return source.status is Status.INITIALIZING or suspended


def _mend_capture(
    engine: Engine, state: State, sources: tuple[Source, ...], database: Connections
) -> None:
    """Set up triggers and buffers that fit the tables as they are, before the snapshot is taken.

    Raise SourcesUnusable for sources that are locked, or that wait for a DBA.
    """
    with database.session() as connection:
        tables = inspect(connection, [source.oid for source in sources])
    options = capture_options(engine.settings(state))
    unusable: dict[int, Transient | UserError] = {}
    for source in sources:
        if source.oid not in tables:
            continue
        table = captured_part(source, tables[source.oid])
        try:
            with engine.step(SetUpCapture(source.relation)):
                set_up(
                    database,
                    table,
                    max_buffer_mb=options.max_buffer_mb,
                    unlogged=options.unlogged,
                    whole=tables[source.oid],
                )
        except (Transient, UserError) as error:
            # The command that needs a new source gets the error.
            if error.code not in LEFT_OUT or source.status is Status.INITIALIZING:
                raise
            unusable[source.oid] = error
    if unusable:
        raise SourcesUnusable(unusable)
