"""A sweep: tables that are brought to one epoch and published as one, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

from headrace.catalog import Change, State, Transaction
from headrace.catalog.records import Effort, Refresh, RefreshMode, Status, StreamTable
from headrace.definition import define
from headrace.engine import Engine
from headrace.errors import HeadraceError, Transient, Unavailable, contained
from headrace.graph.cycles import Group, grouped
from headrace.graph.layers import by_stratum
from headrace.publish.alert import alert
from headrace.publish.publish import NOTHING, Advanced, publish
from headrace.refresh.advance import advance, changed_inputs
from headrace.refresh.attempt import Attempt, told
from headrace.refresh.clock import Clock
from headrace.refresh.epochs import is_used_up, may_move, newest_known
from headrace.refresh.fuse import blows_fuse, check_fuse
from headrace.refresh.plan import Decision, decide, may_choose
from headrace.refresh.sizes import ahead_of
from headrace.refresh.strategy import choose
from headrace.refresh.together import consistency_groups
from headrace.steps import RecordFailure


@dataclass(frozen=True)
class Aim:
    """The table for whose sake there is a sweep: the mode asked for, and its clock."""

    relation: str
    asked: RefreshMode | None = None
    clock: Clock = field(default_factory=Clock)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass
class Sweep:
    """`tables` are all that take part, each after those that it reads.

    `replaced` are tables whose successors are made in it. `state` becomes what it is once
    everything is published. What has failed in it leaves logs beyond their pins: whoever writes
    next rolls them back.
    """

    engine: Engine
    state: State
    tables: tuple[StreamTable, ...]
    fence: int
    aim: Aim | None = None
    replaced: tuple[StreamTable, ...] = ()
    advanced: list[Advanced] = field(default_factory=list)
    attempts: dict[str, Attempt] = field(default_factory=dict)
    skipped: int = 0

    @cached_property
    def epoch(self) -> int:
        """The epoch of all that is advanced; taken when it is first needed."""
        newest = newest_known(self.state, (*self.tables, *self.replaced))
        # What takes the place of a table is of a later epoch: readers tell them apart by that.
        moving = [*may_move(self.state, self.tables), *self.replaced]
        if self.aim is not None:
            moving += [table for table in self.tables if table.relation == self.aim.relation]
        if is_used_up(self.state, moving, newest):
            return self.engine.catalog.next_epoch()
        return newest

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that were written."""
        return tuple(relation.id for one in self.advanced for relation in one.relations)

    def run(self) -> None:
        """Look at every table, stratum by stratum, and advance those into which a change comes.

        A stratum into which none comes is skipped as a whole, without looking at its tables.
        """
        skipping = self.engine.settings(self.state).enable_stratum_skip
        for stratum in by_stratum(self.tables):
            aimed = self.aim is not None and self.aim.relation in {t.relation for t in stratum}
            if skipping and not aimed and not _comes_in(stratum, self.state):
                self.skipped += 1
                continue
            for group in grouped(stratum, self.state.stream_tables):
                self._look_at(group)

    def add(self, done: tuple[Advanced, ...]) -> None:
        """What was advanced is part of the sweep, and read by those that come after."""
        self.advanced += done
        self.state = self.state.with_relations(r for one in done for r in one.relations)

    @property
    def moved(self) -> Mapping[str, datetime | None]:
        """The relations that were advanced so far, and the time of the cut behind each."""
        return {one.table.relation: one.as_of for one in self.advanced}

    def publish(self, besides: Change = NOTHING) -> dict[str, Refresh]:
        """Make all of it visible; the refreshes as they were recorded, by relation."""
        advanced = tuple(self.advanced)
        names = ", ".join(f"{one.table.schema}.{one.table.name}" for one in advanced)
        try:
            with contained(f"publish {names}"):
                done = publish(self.engine, advanced, self.state, fence=self.fence, besides=besides)
        except HeadraceError as error:
            failed = tuple(self.attempts.get(one.table.relation) for one in advanced)
            self._remember(tuple(one for one in failed if one is not None), error)
            raise
        self.engine.pasts.add(done)
        return {one.table: one for one in done}

    def _look_at(self, group: Group) -> None:
        aim = self.aim
        if aim is None or aim.relation not in {table.relation for table in group}:
            aim = Aim("")
        changed = changed_inputs(group, self.state)
        decision = decide(group, aim.asked, changed)
        # A group that is skipped uses no epoch.
        epoch = 0 if decision.mode == "SKIPPED" else self.epoch
        attempts = tuple(self._attempt(table, epoch, decision, aim) for table in group)
        self.attempts.update((one.table.relation, one) for one in attempts)
        if decision.mode == "SKIPPED":
            return
        names = ", ".join(f"{table.schema}.{table.name}" for table in group)
        try:
            with contained(f"refresh {names}"):
                check_fuse(self.engine, group, changed, self.state)
                decision, effort = self._chosen(group, aim.asked, decision, changed)
                attempts = tuple(replace(o, decision=decision, effort=effort) for o in attempts)
                self.attempts.update((one.table.relation, one) for one in attempts)
                definitions = tuple(define(one.table, self.state) for one in attempts)
                done = advance(self.engine, attempts, definitions, changed, self.state, self.moved)
        except HeadraceError as error:
            self._remember(attempts, error)
            raise
        self.add(done)

    def _chosen(
        self,
        group: Group,
        asked: RefreshMode | None,
        decision: Decision,
        changed: frozenset[str],
    ) -> tuple[Decision, Effort]:
        """What was decided, or the cheaper way where that may be chosen; and what lies before it.

        All tables of a cycle have the same past.
        """
        engine = self.engine
        ahead = ahead_of(engine, self.state, group, changed)
        if decision.mode != "DIFFERENTIAL" or not may_choose(group, asked):
            return decision, ahead
        choice = choose(ahead, engine.pasts.of(engine.catalog, group[0].relation))
        expected = replace(ahead, incremental=choice.incremental, full=choice.full)
        return Decision(choice.mode, choice.reason, choice.numbers), expected

    def _attempt(self, table: StreamTable, epoch: int, decision: Decision, aim: Aim) -> Attempt:
        skipped = self.skipped if table.relation == aim.relation else 0
        group = self._groups.get(table.relation, ())
        return Attempt(table, epoch, decision, aim.clock, aim.started_at, skipped, group)

    @cached_property
    def _groups(self) -> Mapping[str, tuple[str, ...]]:
        return consistency_groups(self.state, self.engine.settings(self.state))

    def _remember(self, failed: tuple[Attempt, ...], error: HeadraceError) -> None:
        """Keep the failure in the history, also with those that wait for the tables that failed.

        A failure that will not pass by itself marks the tables.
        """
        if not failed:
            return
        first = failed[0].table
        names = frozenset(one.table.relation for one in failed)
        waiting = [
            Attempt(table, self.epoch, failed[0].decision, group=self._groups[table.relation])
            for table in self.tables
            if table.relation not in names and first.relation in self._groups[table.relation]
        ]
        why = f"group-failed: {first.schema}.{first.name} failed, so nothing of its group moved"
        lines = (
            *(one.record(error=told(error)) for one in failed),
            *(one.record(error=why) for one in waiting),
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
                stopped = marked if blows_fuse(error) else ()

                def tell(transaction: Transaction) -> None:
                    for table in stopped:
                        alert(transaction, table)

                self.engine.catalog.commit(change, fence=self.fence, apply=tell)
        except HeadraceError as second:
            error.add_note(f"and the history could not be written: {second.message}")


def _marked(table: StreamTable, error: HeadraceError) -> StreamTable:
    """The table after a failure; what is missing outside is no failure of a table."""
    if isinstance(error, Unavailable):
        return table
    counted = replace(table, failures=table.failures + 1)
    if isinstance(error, Transient) or table.status is Status.SUSPENDED:
        return counted
    if blows_fuse(error):
        return table.suspended(error.message)
    return replace(counted, status=Status.ERROR, reason=error.message)


def _comes_in(stratum: Group, state: State) -> bool:
    """Whether something has changed that a table of the stratum has not taken in."""
    return any(table.epoch == 0 or changed_inputs((table,), state) for table in stratum)
