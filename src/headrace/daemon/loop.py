"""The loop of one lease term: probes, ingests and decides in one thread, until it is stopped."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from headrace.catalog.catalog import lease_lost
from headrace.catalog.records import Status, StreamTable, TierInForce, is_stale
from headrace.daemon.context import ENDING, DaemonContext, logger
from headrace.daemon.exclusive import ExclusiveQueue
from headrace.daemon.heartbeat import LoopHeartbeat
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

# Seconds between two rounds: while work is under way, and after a long time without work.
SHORTEST, LONGEST = 0.02, 0.25
# Interval of full checks, for changes that the pending probe cannot see: sources that were
# rewritten behind their triggers, views, settings.
THOROUGH = 5.0
# Seconds that work may take to end after the daemon was stopped, before it is cancelled.
PATIENCE = 10.0
# The pause after an attempt to rebuild a table.
REBUILD_AGAIN = timedelta(seconds=30)
LONG_AGO = datetime.min.replace(tzinfo=UTC)


class DaemonLoop:
    """The work of a daemon under one lease."""

    def __init__(self, context: DaemonContext, graph: LiveGraph, stop: threading.Event) -> None:
        self._context = context
        self._graph = graph
        self._stop = stop
        self._state = context.engine.catalog.state()
        self._settings = context.engine.settings(self._state)
        self._ingesters = SourceIngesters(context)
        self._exclusive = ExclusiveQueue(context)
        self._refreshes = Refreshes(context)
        self._heartbeat = LoopHeartbeat(context.engine.database, context.lease.fence)
        self._ticks = TickCounter()
        self._warming: threading.Thread | None = None
        # A request may have come while another one was performed.
        self._may_be_asked = False
        self._looked_at = -THOROUGH
        # When the latest full check of all databases began.
        self._asked_at = LONG_AGO
        self._sampled_at = -THOROUGH
        self._noted: tuple[TierInForce, ...] | None = None
        self._decide_at: datetime | None = None

    def run(self) -> None:
        """Serve until stopped, and then finish or cancel the work under way."""
        with self._heartbeat:
            self._run()

    def _run(self) -> None:
        context = self._context
        context.engine.catalog.lose_requests(context.lease.fence)
        self._warm_up()
        pause, may_have_request = SHORTEST, True
        try:
            self._reload()
            while not self._stop.is_set():
                active = self._tick(asked=may_have_request)
                pause = SHORTEST if active else min(1.5 * pause, LONGEST)
                may_have_request = context.listener.wait(pause)
        finally:
            with self._heartbeat.busy("stopping"):
                self._end()

    def _tick(self, *, asked: bool) -> bool:
        """Perform one round; return whether work is under way. `asked`: there may be a request."""
        self._heartbeat.round(self._activity())
        thorough = time.monotonic() - self._looked_at >= THOROUGH
        if thorough:
            self._looked_at = time.monotonic()
            self._require_lease()
            # Measure before the ingest, which drops a slot that retains too much WAL.
            self._measure()
        ended = self._refreshes.collect(self._state, self._settings)
        done = self._exclusive.done()
        if ended or done or thorough:
            # The next moment at which a group is due has to be computed again.
            self._decide_at = None
        if done:
            # Groups that are due get their turn in this round, before the next request.
            self._may_be_asked = True
        elif (asked or thorough or self._may_be_asked) and not self._exclusive.wanted:
            self._may_be_asked = self._exclusive.take_request()
        if self._exclusive.wanted:
            if not self._refreshes.relations:
                self._exclusive.go_on()
            return True
        if ended or thorough or done:
            self._reload()
        asking_at = self._context.now()
        with self._heartbeat.busy("taking in changes"):
            took = self._ingesters.take(self._state, thorough=thorough)
        if thorough:
            self._asked_at = asking_at
        if took:
            self._end_tick()
            self._reload()
        try:
            self._watch_reads()
            if thorough:
                self._check_views_and_tiers()
        except HeadraceError as error:
            if error.code in ENDING:
                raise
            self._context.failed("looking at views and reads", error)
        return self._decide() or ended or took or done or bool(self._refreshes.relations)

    def _activity(self) -> str | None:
        """Return the work beside the loop that the loop may have to wait for, such as a publish."""
        if self._exclusive.wanted:
            return "performing a command or a rebuild"
        return "refreshing" if self._refreshes.relations else None

    def _require_lease(self) -> None:
        """Raise `lease-lost` if the lease is not ours any more, as after the session broke."""
        own_lease, serving_lease = self._context.lease, self._context.engine.catalog.serving()
        if serving_lease is None or serving_lease.fence != own_lease.fence:
            raise lease_lost(
                own_lease.fence, own_lease.fence if serving_lease is None else serving_lease.fence
            )

    def _measure(self) -> None:
        """Send alerts of levels that have changed."""
        context = self._context
        tables = {table.relation: table for table in self._state.stream_tables}
        tiers = tiers_of(tables, self._settings, context.memory)
        try:
            context.monitor.look(context.engine, self._state, context.now(), tiers)
        except HeadraceError as error:
            if error.code in ENDING:
                raise
            context.failed("measuring levels", error)

    def _reload(self) -> None:
        """Read the state of the catalog again."""
        state = self._context.engine.catalog.state()
        self._state, self._settings = state, self._context.engine.settings(state)
        self._graph.follow(state.stream_tables)
        self._context.memory.keep({table.relation for table in state.stream_tables})
        self._decide_at = None

    def _check_views_and_tiers(self) -> None:
        """Record tick counters and tiers in force; rebuild tables over changed views."""
        self._record_ticks()
        self._note_tiers()
        context = self._context
        tables = self._state.stream_tables
        viewing = [
            table for table in tables if table.views and table.status is not Status.SUSPENDED
        ]
        followed_tables = followed(self._agenda()) if viewing else frozenset()
        viewing = [table for table in viewing if table.relation in followed_tables]
        if viewing:
            with context.engine.database.session() as connection:
                changed = changed_views(connection, *viewing, wait=False)
            for table in viewing:
                if table.relation in changed:
                    self._rebuild(table)

    def _watch_reads(self) -> None:
        """Count reads of tables whose tier depends on them, twice in `lazy_refresh_timeout`."""
        context, state, settings = self._context, self._state, self._settings
        now = time.monotonic()
        if now - self._sampled_at < min(THOROUGH, settings.lazy_refresh_timeout / 2):
            return
        self._sampled_at = now
        before = {name: activity.total for name, activity in context.memory.reads.items()}
        sample_reads(context.engine, state, settings, context.memory, context.now())
        if before != {name: activity.total for name, activity in context.memory.reads.items()}:
            self._decide_at = None

    def _note_tiers(self) -> None:
        """Record the tiers in force, if they have changed."""
        tables = {table.relation: table for table in self._state.stream_tables}
        tiers = tiers_in_force(tables, self._settings, self._context.memory)
        if tiers != self._noted:
            self._context.engine.catalog.note_tiers(tiers)
            self._noted = tiers

    def _decide(self) -> bool:
        """Start the groups and rebuilds that are due; return whether any was started."""
        context, state, settings = self._context, self._state, self._settings
        now = context.now()
        if self._decide_at is not None and self._decide_at > now:
            return False
        groups = self._agenda()
        followed_tables = followed(groups)
        stale = [
            *state.to_be_rebuilt,
            *(t for t in state.stream_tables if is_stale(t) and t.status is not Status.SUSPENDED),
        ]
        lazy = timedelta(seconds=settings.lazy_refresh_timeout)
        due_groups = due(now, groups, lazy)
        # A table with rows is rebuilt at once; one that was never filled waits for its schedule.
        first = {name for group in due_groups for name in group.relations}
        tables_to_rebuild = [
            t for t in stale if t.relation in (first if t.is_uninitialized else followed_tables)
        ]
        if any(self._rebuild(table) for table in tables_to_rebuild):
            return True
        running = self._refreshes.relations
        hopeless = {table.relation for table in stale}
        reads = {table.relation: table.inputs for table in state.stream_tables}
        lacking = {t.relation for t in state.stream_tables if t.epoch == 0 or lacks(state, t)}
        start, idle = startable(
            [group for group in due_groups if hopeless.isdisjoint(group.relations)],
            reads,
            lacking,
            running,
            context.memory.ended,
        )
        for group in passed(idle, groups, self._asked_at, self._tables_not_ingested()):
            context.memory.attempted(group.relations, now)
        started = self._refreshes.start(start, state, settings.workers)
        now_running = self._refreshes.relations
        self._ticks.started(self._graph.place(name).stratum for name in now_running - running)
        if not now_running:
            self._end_tick()
        self._decide_at = next_due(now, self._agenda(), lazy) or now + timedelta(seconds=THOROUGH)
        return started

    def _tables_not_ingested(self) -> frozenset[str]:
        """Return the tables below which there is a database whose changes cannot be taken in."""
        tables = self._state.stream_tables
        if all(database.failing_since is None for database in self._state.databases):
            return frozenset()
        return frozenset(
            table.relation
            for table in tables
            if any(
                failing_databases(self._state, upstream_table)
                for upstream_table in upstream(tables, table)
            )
        )

    def _end_tick(self) -> None:
        """Count the strata that were refreshed since the last cut, and those that were skipped."""
        if not self._settings.enable_stratum_skip or not self._ticks.refreshed:
            return
        tables, place = self._state.stream_tables, self._graph.place
        strata = {place(table.relation).stratum for table in tables}
        waiting = {place(table.relation).stratum for table in may_move(self._state, tables)}
        refreshed = sorted(self._ticks.refreshed)
        skipped = self._ticks.end(strata, waiting, self._context.now())
        logger.debug("tick", extra={"refreshed": refreshed, "skipped": sorted(skipped)})

    def _record_ticks(self) -> None:
        counted = self._ticks.take()
        if counted:
            self._context.engine.catalog.count_ticks(counted)

    def _agenda(self) -> tuple[ScheduledGroup, ...]:
        memory, running = self._context.memory, self._refreshes.relations
        return agenda(self._state, self._settings, self._graph.groups, memory, running)

    def _rebuild(self, table: StreamTable) -> bool:
        """Queue the rebuild of a table, unless one was tried just now; return whether it was."""
        context = self._context
        if context.memory.retry_at.get(table.relation, LONG_AGO) > context.now():
            return False
        context.memory.retry_at[table.relation] = context.now() + REBUILD_AGAIN
        self._exclusive.rebuild(table)
        return True

    def _warm_up(self) -> None:
        """Start Spark before it is needed, if anything is refreshed by schedule."""
        if any(table.schedule for table in self._state.stream_tables):
            self._warming = threading.Thread(target=self._first_query, name="headrace-warm-up")
            self._warming.start()

    def _first_query(self) -> None:
        try:
            self._context.engine.runner.collect("SELECT 1", [])
        except HeadraceError as error:
            self._context.failed("starting Spark", error)

    def _end(self) -> None:
        with self._context.engine.runner.ending(PATIENCE):
            self._refreshes.end()
            self._exclusive.end()
            self._ingesters.close()
            if self._warming is not None:
                self._warming.join()
        with suppress(HeadraceError):
            self._record_ticks()
