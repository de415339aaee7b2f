"""Ingests of a daemon: a cut when there are changes, and retries when that failed.

Each database is ingested by itself: one that does not answer stops only the tables that read it.
Suspended sources, such as one that was locked when it had to be copied, are retried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from headrace.capture.standing import Standing, standing
from headrace.capture.wal.pending import pause, probe_changes
from headrace.capture.wal.streaming_reader import StreamingReader
from headrace.catalog import Change, State, records
from headrace.catalog.records import CaptureMode, Status
from headrace.daemon.context import ENDING, DaemonContext
from headrace.daemon.wakeup import PendingProbe
from headrace.engine import HOME
from headrace.errors import HeadraceError, NeedsReinit, Unavailable
from headrace.ingest.from_wal import slot_reader_of
from headrace.ingest.ingest import databases_of, ingest_database, sources_in
from headrace.ingest.streaming import keep_streaming
from headrace.relations.compaction import compact
from headrace.schedule.retry import after_failure
from headrace.source.connection import Database

NEVER_SUSPENDED = 1 << 30
# Rows that are written may mend a suspended source, and an attempt copies the source. Rows alone
# cause an attempt only after a rest of REST_SECONDS and REST_FACTOR times the last attempt's time.
REST_SECONDS, REST_FACTOR = 10.0, 10.0
LEASE_LOST = "lease-lost"


class SourceIngester:
    """Ingests of one database for a daemon, in the daemon's own thread."""

    def __init__(self, context: DaemonContext, number: int) -> None:
        self._context = context
        self._number = number
        self._probe: PendingProbe | None = None
        self._reaching: ConnectionAttempt | None = None
        self._failures = 0
        self._not_before = 0.0
        self._stalls = 0
        self._stalled_until = 0.0
        # The standing of the suspended sources when they were last tried.
        self._standing: dict[int, Standing] = {}
        self._rest_until = 0.0
        # Up to position `_quiet` the WAL has no changes; the next probe is at `_ask_log_at`.
        self._quiet = 0
        self._ask_log_at = 0.0
        self._reason: str | None = None

    def take(self, state: State, *, thorough: bool) -> bool:
        """Ingest a cut if there are changes; return whether the catalog has changed by that.

        Without `thorough` only buffers and the WAL are probed for changes.
        """
        if time.monotonic() < self._not_before or not self._is_reached(state):
            return False
        context = self._context
        try:
            if not thorough and not self._has_changes(state):
                return False
            after = self._ingested(state, thorough=thorough)
            self._note(keep_streaming(context.engine, after, self._number, context.listener.wake))
        except HeadraceError as error:
            if error.code in ENDING and (self._number == HOME or error.code == LEASE_LOST):
                raise
            self._put_off(state, error)
            return True
        self._failures = 0
        if after.database(self._number).failing_since is not None:
            self._record(None)
        return after is not state

    def close(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    def _note(self, log: StreamingReader | None) -> None:
        """Report once the reason for which the WAL is not streamed."""
        reason = None if log is None else log.reason
        if reason is not None and reason != self._reason:
            self._context.report(f"the WAL is read in batches, not streamed: {reason}")
        self._reason = reason

    def _ingested(self, state: State, *, thorough: bool) -> State:
        engine, fence = self._context.engine, self._context.lease.fence
        after = ingest_database(engine, state, self._number, fence)
        if thorough:
            after = self._try_stopped(after)
        moved = [
            source.relation
            for source in sources_in(state, self._number)
            if after.relation(source.relation).pin != state.relation(source.relation).pin
        ]
        if moved:
            compact(engine, moved, fence)
        return after

    def _try_stopped(self, state: State) -> State:
        """Ingest a cut with the suspended sources, after a backoff or once a source has changed."""
        sources = sources_in(state, self._number)
        stopped = {source.relation for source in sources if source.status is Status.SUSPENDED}
        waiting = {
            name
            for table in state.stream_tables
            if not table.held
            for name in stopped.intersection(table.inputs)
        }
        if not waiting:
            self._stalls, self._stalled_until = 0, 0.0
            return state
        standings = self._stands(
            state, [source.oid for source in sources if source.relation in waiting]
        )
        began = time.monotonic()
        if began < self._stalled_until and not self._may_be_mended(standings, began):
            return state
        self._standing = standings
        context = self._context
        engine, fence = context.engine, context.lease.fence
        kind: type[HeadraceError] = NeedsReinit
        try:
            after = ingest_database(
                engine, state, self._number, fence, retry=frozenset(waiting), required=False
            )
        except HeadraceError as error:
            if error.code in ENDING:
                raise
            kind = type(error)
            engine.roll_back((source.relation for source in sources), fence)
            context.failed("copying sources again", error)
            after = engine.catalog.state()
        ended = time.monotonic()
        self._rest_until = ended + max(REST_SECONDS, REST_FACTOR * (ended - began))
        self._stalls += 1
        wait = after_failure(kind, self._stalls, NEVER_SUSPENDED, context.random)
        self._stalled_until = ended + (wait or timedelta()).total_seconds()
        return after

    def _may_be_mended(self, found: dict[int, Standing], now: float) -> bool:
        """Return whether something about the sources differs from when they were last tried."""
        if found == self._standing:
            return False
        shapes, before = (
            {oid: source_standing.shape for oid, source_standing in each.items()}
            for each in (found, self._standing)
        )
        return shapes != before or now >= self._rest_until

    def _stands(self, state: State, oids: Collection[int]) -> dict[int, Standing]:
        database = self._context.engine.source_database(state.database(self._number))
        with database.session() as connection:
            return standing(connection, oids)

    def _has_changes(self, state: State) -> bool:
        database = state.database(self._number)
        if database.snapshot is None:
            return True
        active = [s for s in sources_in(state, self._number) if s.status is Status.ACTIVE]
        buffered = [source.oid for source in active if source.mode is not CaptureMode.WAL]
        if buffered and self._asked(database).since(buffered, database.snapshot):
            return True
        return len(buffered) < len(active) and self._wal_has_changes(database)

    def _asked(self, database: records.DatabaseRecord) -> PendingProbe:
        if self._number == HOME:
            return self._context.listener.probe
        if self._probe is None:
            self._probe = PendingProbe(self._context.engine.source_database(database).connect())
        return self._probe

    def _wal_has_changes(self, database: records.DatabaseRecord) -> bool:
        """Return whether the WAL has changes; a WAL that is not streamed is probed with pauses.

        The pause grows with the time that the last probe took.
        """
        if database.following is None or database.snapshot is None:
            return True
        engine = self._context.engine
        reader = slot_reader_of(engine, database, database.following)
        upto = reader.received()
        if upto is None and time.monotonic() < self._ask_log_at:
            return False
        with engine.source_database(database).session() as connection:
            probe_result = probe_changes(connection, reader, database.snapshot, self._quiet, upto)
        self._quiet = probe_result.quiet
        self._ask_log_at = time.monotonic() + pause(probe_result.seconds)
        return probe_result.pending

    def _is_reached(self, state: State) -> bool:
        """Return whether an attached database that failed answers again.

        A separate thread connects, since a database that does not answer would block all others.
        """
        if self._number == HOME or not self._failures:
            return True
        if self._reaching is None:
            database = state.database(self._number)
            self._reaching = ConnectionAttempt(self._context.engine.source_database(database))
        if not self._reaching.ended:
            return False
        error, self._reaching = self._reaching.error, None
        if error is not None:
            self._put_off(state, error)
        return error is None

    def _put_off(self, state: State, error: HeadraceError) -> None:
        """Retry later; roll back what was written beyond the pins."""
        context = self._context
        self.close()
        self._failures += 1
        # A cut that fails as a whole costs little, and all readers wait for it: at most a minute.
        wait = after_failure(Unavailable, self._failures, NEVER_SUSPENDED, context.random)
        self._not_before = time.monotonic() + (wait or timedelta()).total_seconds()
        sources = sources_in(state, self._number)
        context.engine.roll_back((source.relation for source in sources), context.lease.fence)
        where = "" if self._number == HOME else f" of {state.database(self._number).alias}"
        context.failed(f"taking in changes{where}", error)
        self._record(error.message)

    def _record(self, failure: str | None) -> None:
        """Record the failure to take in changes; None records that they are taken in again."""
        context = self._context
        try:
            with context.engine.changing(State()) as current:
                record = current.database(self._number)
                since = None if failure is None else record.failing_since or context.now()
                failing = replace(record, failing_since=since, failure=failure)
                if failing != record:
                    context.engine.catalog.commit(Change(put=(failing,)), fence=context.lease.fence)
        except HeadraceError as error:
            # Without the catalog no status can be shown either.
            context.failed("recording a failure", error)


class SourceIngesters:
    """The ingests of all databases, one after the other; none waits for a database that fails."""

    def __init__(self, context: DaemonContext) -> None:
        self._context = context
        self._ingesters: dict[int, SourceIngester] = {}

    def take(self, state: State, *, thorough: bool) -> bool:
        """Ingest the changes of every database; return whether the catalog has changed by that."""
        numbers = databases_of(state)
        for gone in self._ingesters.keys() - set(numbers):
            self._ingesters.pop(gone).close()
        took = False
        for number in numbers:
            if number not in self._ingesters:
                self._ingesters[number] = SourceIngester(self._context, number)
            # An ingest starts from the state that the one before it left.
            newest_state = self._context.engine.catalog.state() if took else state
            took |= self._ingesters[number].take(newest_state, thorough=thorough)
        return took

    def close(self) -> None:
        for ingester in self._ingesters.values():
            ingester.close()
        self._context.engine.slot_readers.close()


class ConnectionAttempt:
    """An attempt to connect to a database, made by a thread of its own."""

    def __init__(self, database: Database) -> None:
        self.error: HeadraceError | None = None
        self._database = database
        self._thread = threading.Thread(target=self._try, name="headrace-reach", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def _try(self) -> None:
        try:
            self._database.connect().close()
        except HeadraceError as error:
            self.error = error
