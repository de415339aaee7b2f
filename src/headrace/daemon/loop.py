"""One time of serving: asks, ingests and decides in one thread, until it is told to stop."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from headrace.catalog.catalog import lease_lost
from headrace.catalog.records import Status, StreamTable, TierInForce, is_stale
from headrace.daemon.context import ENDING, DaemonContext, logger
from headrace.daemon.exclusive import ExclusiveQueue
from headrace.daemon.ingester import SourceIngesters
from headrace.daemon.reads import sample_reads
from headrace.daemon.refreshes import Refreshes
from headrace.errors import HeadraceError
from headrace.graph import upstream
from headrace.graph.live import LiveGraph
from headrace.lifecycle.drift import changed_views
from headrace.observe.lag import failing_databases
from headrace.refresh.epochs import lacks, may_move
from headrace.schedule.due import ScheduledGroup, due, next_due
from headrace.schedule.state import agenda, followed, passed, startable, tiers_of
from headrace.schedule.strata_ticks import TickCounter
from headrace.schedule.tiers_in_force import tiers_in_force

# Seconds between two questions: while something goes on, and after long quiet.
SHORTEST, LONGEST = 0.02, 0.25
# Seconds between two looks at what no question tells: dirty sources, views, settings.
THOROUGH = 5.0
# Seconds that work may take to end after the daemon was told to stop, before it is cancelled.
PATIENCE = 10.0
# How long it takes until a table that could not be made anew is tried again.
ANEW_AGAIN = timedelta(seconds=30)
LONG_AGO = datetime.min.replace(tzinfo=UTC)


class DaemonLoop:
    """What a daemon does under one lease."""

    def __init__(self, shift: DaemonContext, graph: LiveGraph, stop: threading.Event) -> None:
        self._shift = shift
        self._graph = graph
        self._stop = stop
        self._state = shift.engine.catalog.state()
        self._settings = shift.engine.settings(self._state)
        self._intake = SourceIngesters(shift)
        self._alone = ExclusiveQueue(shift)
        self._refreshes = Refreshes(shift)
        self._ticks = TickCounter()
        self._warming: threading.Thread | None = None
        self._looked_at = -THOROUGH
        # When the latest round began in which all databases were asked for whatever is new.
        self._asked_at = LONG_AGO
        self._sampled_at = -THOROUGH
        self._noted: tuple[TierInForce, ...] | None = None
        self._decide_at: datetime | None = None

    def run(self) -> None:
        """Serve until told to stop; what is being done then is finished, or cancelled."""
        shift = self._shift
        shift.engine.catalog.lose_requests(shift.lease.fence)
        self._warm_up()
        pause, asked = SHORTEST, True
        try:
            self._reload()
            while not self._stop.is_set():
                active = self._tick(asked=asked)
                pause = SHORTEST if active else min(1.5 * pause, LONGEST)
                asked = shift.ears.wait(pause)
        finally:
            self._end()

    def _tick(self, *, asked: bool) -> bool:
        """One round; whether anything goes on. `asked` says that there may be a request."""
        thorough = time.monotonic() - self._looked_at >= THOROUGH
        if thorough:
            self._looked_at = time.monotonic()
            self._require_lease()
            # Before changes are taken in: a slot that holds back too much is dropped by that.
            self._measure()
        ended = self._refreshes.collect(self._state, self._settings)
        done = self._alone.done()
        if ended or done or thorough:
            # What was known of who is due next does not hold any more.
            self._decide_at = None
        if (asked or thorough or done) and not self._alone.wanted:
            self._alone.take_request()
        if self._alone.wanted:
            if not self._refreshes.relations:
                self._alone.go_on()
            return True
        if ended or thorough or done:
            self._reload()
        asking_at = self._shift.now()
        took = self._intake.take(self._state, thorough=thorough)
        if thorough:
            self._asked_at = asking_at
        if took:
            self._end_tick()
            self._reload()
        try:
            self._watch_reads()
            if thorough:
                self._look_around()
        except HeadraceError as error:
            if error.code in ENDING:
                raise
            self._shift.failed("looking at views and reads", error)
        return self._decide() or ended or took or bool(self._refreshes.relations)

    def _require_lease(self) -> None:
        """A session that broke has given the lease up, whoever has it now."""
        ours, found = self._shift.lease, self._shift.engine.catalog.serving()
        if found is None or found.fence != ours.fence:
            raise lease_lost(ours.fence, ours.fence if found is None else found.fence)

    def _measure(self) -> None:
        """Send alerts of levels that have changed."""
        shift = self._shift
        tables = {table.relation: table for table in self._state.stream_tables}
        tiers = tiers_of(tables, self._settings, shift.memory)
        try:
            shift.monitor.look(shift.engine, self._state, shift.now(), tiers)
        except HeadraceError as error:
            if error.code in ENDING:
                raise
            shift.failed("measuring levels", error)

    def _reload(self) -> None:
        """Know what the catalog knows by now."""
        state = self._shift.engine.catalog.state()
        self._state, self._settings = state, self._shift.engine.settings(state)
        self._graph.follow(state.stream_tables)
        self._shift.memory.keep({table.relation for table in state.stream_tables})
        self._decide_at = None

    def _look_around(self) -> None:
        """Notice views that were changed, and keep what others may want to know."""
        shift = self._shift
        tables = self._state.stream_tables
        viewing = [one for one in tables if one.views and one.status is not Status.SUSPENDED]
        known = followed(self._agenda()) if viewing else frozenset()
        viewing = [one for one in viewing if one.relation in known]
        if viewing:
            with shift.engine.database.session() as connection:
                changed = changed_views(connection, *viewing)
            for table in viewing:
                if table.relation in changed:
                    self._make_anew(table)
        self._record_ticks()
        self._note_tiers()

    def _watch_reads(self) -> None:
        """Count reads of tables whose tier depends on them, soon enough for those who wait."""
        shift, state, settings = self._shift, self._state, self._settings
        now = time.monotonic()
        if now - self._sampled_at < min(THOROUGH, settings.lazy_refresh_timeout / 2):
            return
        self._sampled_at = now
        before = {name: one.total for name, one in shift.memory.reads.items()}
        sample_reads(shift.engine, state, settings, shift.memory, shift.now())
        if before != {name: one.total for name, one in shift.memory.reads.items()}:
            self._decide_at = None

    def _note_tiers(self) -> None:
        """Let others know which tiers are in force, if that has changed."""
        tables = {table.relation: table for table in self._state.stream_tables}
        found = tiers_in_force(tables, self._settings, self._shift.memory)
        if found != self._noted:
            self._shift.engine.catalog.note_tiers(found)
            self._noted = found

    def _decide(self) -> bool:
        """Start what is due; whether anything was started."""
        shift, state, settings = self._shift, self._state, self._settings
        now = shift.now()
        if self._decide_at is not None and self._decide_at > now:
            return False
        groups = self._agenda()
        known = followed(groups)
        stale = [
            *state.to_be_rebuilt,
            *(t for t in state.stream_tables if is_stale(t) and t.status is not Status.SUSPENDED),
        ]
        lazy = timedelta(seconds=settings.lazy_refresh_timeout)
        found = due(now, groups, lazy)
        # What has rows is rebuilt at once; what never had any waits for its schedule.
        first = {name for one in found for name in one.relations}
        wanted = [t for t in stale if t.relation in (first if t.is_uninitialized else known)]
        if any(self._make_anew(table) for table in wanted):
            return True
        running = self._refreshes.relations
        hopeless = {table.relation for table in stale}
        reads = {table.relation: table.inputs for table in state.stream_tables}
        lacking = {t.relation for t in state.stream_tables if t.epoch == 0 or lacks(state, t)}
        start, idle = startable(
            [one for one in found if hopeless.isdisjoint(one.relations)],
            reads,
            lacking,
            running,
            shift.memory.ended,
        )
        for group in passed(idle, groups, self._asked_at, self._unasked()):
            shift.memory.attempted(group.relations, now)
        started = self._refreshes.start(start, state, settings.workers)
        now_running = self._refreshes.relations
        self._ticks.started(self._graph.place(name).stratum for name in now_running - running)
        if not now_running:
            self._end_tick()
        self._decide_at = next_due(now, self._agenda(), lazy) or now + timedelta(seconds=THOROUGH)
        return started

    def _unasked(self) -> frozenset[str]:
        """Return the tables below which there is a database whose changes cannot be taken in."""
        tables = self._state.stream_tables
        if all(database.failing_since is None for database in self._state.databases):
            return frozenset()
        return frozenset(
            table.relation
            for table in tables
            if any(failing_databases(self._state, one) for one in upstream(tables, table))
        )

    def _end_tick(self) -> None:
        """Count the strata that were refreshed since the last cut, and those that were skipped."""
        if not self._settings.enable_stratum_skip or not self._ticks.refreshed:
            return
        tables, place = self._state.stream_tables, self._graph.place
        strata = {place(table.relation).stratum for table in tables}
        waiting = {place(table.relation).stratum for table in may_move(self._state, tables)}
        refreshed = sorted(self._ticks.refreshed)
        skipped = self._ticks.end(strata, waiting, self._shift.now())
        logger.debug("tick", extra={"refreshed": refreshed, "skipped": sorted(skipped)})

    def _record_ticks(self) -> None:
        counted = self._ticks.take()
        if counted:
            self._shift.engine.catalog.count_ticks(counted)

    def _agenda(self) -> tuple[ScheduledGroup, ...]:
        memory, running = self._shift.memory, self._refreshes.relations
        return agenda(self._state, self._settings, self._graph.groups, memory, running)

    def _make_anew(self, table: StreamTable) -> bool:
        """Have a table made anew, unless that was tried just now."""
        shift = self._shift
        if shift.memory.retry_at.get(table.relation, LONG_AGO) > shift.now():
            return False
        shift.memory.retry_at[table.relation] = shift.now() + ANEW_AGAIN
        self._alone.make_anew(table)
        return True

    def _warm_up(self) -> None:
        """Start Spark before it is needed, if anything is refreshed by schedule."""
        if any(table.schedule for table in self._state.stream_tables):
            self._warming = threading.Thread(target=self._first_query, name="headrace-warm-up")
            self._warming.start()

    def _first_query(self) -> None:
        try:
            self._shift.engine.runner.collect("SELECT 1", [])
        except HeadraceError as error:
            self._shift.failed("starting Spark", error)

    def _end(self) -> None:
        with self._shift.engine.runner.ending(PATIENCE):
            self._refreshes.end()
            self._alone.end()
            self._intake.close()
            if self._warming is not None:
                self._warming.join()
        with suppress(HeadraceError):
            self._record_ticks()
