"""A run: tables that are brought to one epoch and published as one, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

from headrace.catalog import Change, State
from headrace.catalog.records import Effort, Refresh, RefreshMode, Status, StreamTable
from headrace.engine import Engine
from headrace.engine.steps import RecordFailure
from headrace.errors import HeadraceError, Transient, Unavailable, contained
from headrace.graph import upstream
from headrace.graph.components import Group, grouped
from headrace.graph.strata import by_stratum
from headrace.publish.publish import NOTHING, Advanced, Serve, Unread, publish, serve_nothing
from headrace.refresh.advance import advance, changed_inputs
from headrace.refresh.attempt import Clock, RefreshAttempt, recorded_error
from headrace.refresh.change_size import (
    changed_where_read,
    check_change_limit,
    exceeds_change_limit,
    expected_effort,
)
from headrace.refresh.cost_history import CostHistory
from headrace.refresh.epochs import Times, frontier, is_used_up, may_move, newest_known
from headrace.refresh.parallel import run_parallel
from headrace.refresh.plan import UNREAD, Decision, decide, may_choose, may_skip_unread
from headrace.refresh.scope import consistency_groups
from headrace.refresh.strategy import choose
from headrace.relations.definition import define
from headrace.spark.jobs import acting_thread


@dataclass(frozen=True)
class RefreshTarget:
    """The table for whose sake a run refreshes: the requested mode, and its clock.

    Tables that are `allowed` may take in more than `max_change_rows`.
    """

    relation: str
    asked: RefreshMode | None = None
    clock: Clock = field(default_factory=Clock)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    allowed: frozenset[str] = frozenset()


@dataclass
class RefreshRun:
    """One run: `tables` are all that take part, each after those that it reads.

    `replaced` are tables whose successors are made in it, `unread` those into which only changes
    came that they do not read. `state` becomes what it is once everything is published. What has
    failed in it leaves logs beyond their pins: whoever writes next rolls them back.
    """

    engine: Engine
    state: State
    tables: tuple[StreamTable, ...]
    fence: int
    target: RefreshTarget | None = None
    replaced: tuple[StreamTable, ...] = ()
    advanced: list[Advanced] = field(default_factory=list)
    attempts: dict[str, RefreshAttempt] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    failures: list[tuple[tuple[RefreshAttempt, ...], HeadraceError]] = field(default_factory=list)

    @cached_property
    def epoch(self) -> int:
        """The epoch of all that is advanced; taken when it is first needed."""
        newest = newest_known(self.state, (*self.tables, *self.replaced))
        # A table that takes the place of another is of a later epoch, by which readers distinguish
        # the two.
        moving = [*may_move(self.state, self.tables), *self.replaced]
        if self.target is not None:
            moving += [table for table in self.tables if table.relation == self.target.relation]
        if is_used_up(self.state, moving, newest):
            return self.engine.catalog.next_epoch()
        return newest

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that were written."""
        return tuple(
            relation.id for advanced_table in self.advanced for relation in advanced_table.relations
        )

    def run(self) -> None:
        """Advance every table into which a change comes, each after those that it reads.

        Those that do not read each other are computed side by side. All others are skipped.
        """
        parts = {
            group[0].relation: group for group in grouped(self.tables, self.state.stream_tables)
        }
        part_of = {table.relation: name for name, group in parts.items() for table in group}
        waits_for = {
            name: {part_of[i] for table in group for i in table.inputs if i in part_of} - {name}
            for name, group in parts.items()
        }
        runner, thread = self.engine.runner, acting_thread()
        try:
            run_parallel(
                waits_for,
                lambda name: self._begin(parts[name]),
                lambda _, done: self.add(done),
                self.engine.settings(self.state).workers,
                lambda: runner.cancel(thread),
            )
        except HeadraceError as error:
            for attempts, failure in self.failures:
                if failure is error:
                    self._remember(attempts, error)
            raise

    def add(self, done: tuple[Advanced, ...]) -> None:
        """Add advanced tables to the run, for later ones to read."""
        self.advanced += done
        self.state = self.state.with_relations(
            r for advanced_table in done for r in advanced_table.relations
        )

    @property
    def moved(self) -> Mapping[str, datetime | None]:
        """The relations that were advanced so far, and the time of the cut behind each."""
        return {
            advanced_table.table.relation: advanced_table.as_of for advanced_table in self.advanced
        }

    def publish(
        self, besides: Change = NOTHING, serve_besides: Serve = serve_nothing
    ) -> dict[str, Refresh]:
        """Publish all of it, and return the recorded refreshes by relation."""
        advanced, unread = tuple(self.advanced), tuple(self.unread)
        tables = [
            *(advanced_table.table for advanced_table in advanced),
            *(unread_table.table for unread_table in unread),
        ]
        try:
            with contained(f"publish {_names(tables)}"):
                done = publish(
                    self.engine,
                    advanced,
                    self.state,
                    fence=self.fence,
                    unread=unread,
                    besides=besides,
                    serve_besides=serve_besides,
                )
        except HeadraceError as error:
            failed = tuple(
                self.attempts.get(advanced_table.table.relation) for advanced_table in advanced
            )
            self._remember(tuple(attempt for attempt in failed if attempt is not None), error)
            raise
        self.engine.part(CostHistory).add(done)
        return {refresh.table: refresh for refresh in done}

    def finish(self) -> dict[str, Refresh]:
        """Publish, if a table has taken in anything, and return the refreshes by relation."""
        return self.publish() if self.advanced or self.unread else {}

    def _begin(self, group: Group) -> Callable[[], tuple[Advanced, ...]] | None:
        """Return the task that computes a table or a cycle; None if no change comes into it."""
        target = self.target
        if target is None or target.relation not in {table.relation for table in group}:
            target = RefreshTarget("")
        changed = changed_inputs(group, self.state)
        decision = decide(group, target.asked, changed)
        if decision.mode != "SKIPPED" and may_skip_unread(group, target.asked):
            changed = self._where_read(group, changed, decision, target)
            if not changed:
                decision = UNREAD
                self.unread += map(self._unread, group)
        # A group that is skipped uses no epoch.
        epoch = 0 if decision.mode == "SKIPPED" else self.epoch
        attempts = tuple(self._attempt(table, epoch, decision, target) for table in group)
        self.attempts.update((attempt.table.relation, attempt) for attempt in attempts)
        if decision.mode == "SKIPPED":
            return None
        state, moved = self.state, self.moved
        return lambda: self._compute(attempts, target.asked, changed, state, moved)

    def _where_read(
        self, group: Group, changed: frozenset[str], decision: Decision, target: RefreshTarget
    ) -> frozenset[str]:
        """Return those of the changed inputs that changed in columns which the tables read."""
        try:
            with contained(f"refresh {_names(group)}"):
                return changed_where_read(self.engine, self.state, group, changed)
        except HeadraceError as error:
            attempts = tuple(self._attempt(table, self.epoch, decision, target) for table in group)
            self.failures.append((attempts, error))
            raise

    def _unread(self, table: StreamTable) -> Unread:
        """Return the table with changes taken in that it does not read."""
        epoch = self.epoch if self.advanced else 0
        return Unread(table, frontier(self.state, table, epoch, self.moved))

    def _compute(
        self,
        attempts: tuple[RefreshAttempt, ...],
        requested_mode: RefreshMode | None,
        changed: frozenset[str],
        state: State,
        moved: Times,
    ) -> tuple[Advanced, ...]:
        group = tuple(attempt.table for attempt in attempts)
        try:
            with contained(f"refresh {_names(group)}"):
                allowed = frozenset[str]() if self.target is None else self.target.allowed
                check_change_limit(self.engine, group, changed, state, allowed)
                decision, effort = self._chosen(attempts, requested_mode, changed, state)
                attempts = tuple(
                    replace(attempt, decision=decision, effort=effort) for attempt in attempts
                )
                self.attempts.update((attempt.table.relation, attempt) for attempt in attempts)
                definitions = tuple(define(table, state) for table in group)
                return advance(self.engine, attempts, definitions, changed, state, moved)
        except HeadraceError as error:
            self.failures.append((attempts, error))
            raise

    def _chosen(
        self,
        attempts: tuple[RefreshAttempt, ...],
        requested_mode: RefreshMode | None,
        changed: frozenset[str],
        state: State,
    ) -> tuple[Decision, Effort]:
        """Return the decision, or the cheaper mode where it may be chosen; and the effort ahead.

        All tables of a cycle have the same past.
        """
        engine, decision = self.engine, attempts[0].decision
        group = tuple(attempt.table for attempt in attempts)
        ahead = expected_effort(engine, state, group, changed)
        if decision.mode != "DIFFERENTIAL" or not may_choose(group, requested_mode):
            return decision, ahead
        choice = choose(ahead, engine.part(CostHistory).of(engine.catalog, group[0].relation))
        expected = replace(ahead, incremental=choice.incremental, full=choice.full)
        return Decision(choice.mode, choice.reason, choice.numbers), expected

    def _attempt(
        self, table: StreamTable, epoch: int, decision: Decision, target: RefreshTarget
    ) -> RefreshAttempt:
        skipped = self._strata_skipped(table) if table.relation == target.relation else 0
        group = self._groups.get(table.relation, ())
        return RefreshAttempt(
            table, epoch, decision, target.clock, target.started_at, skipped, group
        )

    def _strata_skipped(self, table: StreamTable) -> int:
        """Return the number of strata below a table, all done by now, without a changed table."""
        if not self.engine.settings(self.state).enable_stratum_skip:
            return 0
        strata = by_stratum(upstream(self.tables, table))
        moved = {advanced_table.table.relation for advanced_table in self.advanced} | {
            table.relation
        }
        return sum(moved.isdisjoint(table.relation for table in stratum) for stratum in strata)

    @cached_property
    def _groups(self) -> Mapping[str, tuple[str, ...]]:
        return consistency_groups(self.state, self.engine.settings(self.state))

    def _remember(self, failed: tuple[RefreshAttempt, ...], error: HeadraceError) -> None:
        """Record the failure in the history, also for tables that wait for the failed ones.

        A failure that will not pass by itself marks the tables.
        """
        if not failed:
            return
        first = failed[0].table
        names = frozenset(attempt.table.relation for attempt in failed)
        waiting = [
            RefreshAttempt(
                table, self.epoch, failed[0].decision, group=self._groups[table.relation]
            )
            for table in self.tables
            if table.relation not in names and first.relation in self._groups[table.relation]
        ]
        why = f"group-failed: {first.schema}.{first.name} failed, so its group was not published"
        lines = (
            *(attempt.record(error=recorded_error(error)) for attempt in failed),
            *(attempt.record(error=why) for attempt in waiting),
        )
        try:
            with (
                self.engine.step(RecordFailure(first.relation)),
                self.engine.changing(self.state) as current,
            ):
                marked = tuple(
                    _marked(table, error)
                    for table in current.stream_tables
                    if table.relation in names
                )
                change = Change(put=marked, refreshes=lines)
                self.engine.catalog.commit(change, fence=self.fence)
        except HeadraceError as second:
            error.add_note(f"and the history could not be written: {second.message}")


def _names(tables: Iterable[StreamTable]) -> str:
    return ", ".join(f"{table.schema}.{table.name}" for table in tables)


def _marked(table: StreamTable, error: HeadraceError) -> StreamTable:
    """Return the table after a failure; what is missing outside is no failure of a table."""
    if isinstance(error, Unavailable):
        return table
    counted = replace(table, failures=table.failures + 1)
    if isinstance(error, Transient) or table.status is Status.SUSPENDED:
        return counted
    if exceeds_change_limit(error):
        return table.suspended(error.message)
    return replace(counted, status=Status.ERROR, reason=error.message)
