"""What a daemon has on its agenda: tables as groups, what can be started, what has passed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from headrace.catalog import State
from headrace.catalog.records import Status, StreamTable
from headrace.graph.live import LiveGraph
from headrace.schedule.due import Cause, Due, ScheduledGroup, due
from headrace.schedule.state import ScheduleState, agenda, followed, passed, startable
from headrace.schedule.tiers import ReadActivity, ScanCounters, Tier
from headrace.settings import Settings

NONE: frozenset[str] = frozenset()
NOON = datetime(2026, 3, 26, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LAZY = timedelta(seconds=5)


def table(name: str, *inputs: str, schedule: str | None = "1s", **given: Any) -> StreamTable:
    """A published stream table, whose relation is its name."""
    return StreamTable(
        schema="public",
        name=name,
        relation=name,
        query="",
        columns=(),
        inputs=inputs,
        schedule=schedule,
        frontier=dict.fromkeys(inputs, 1),
        epoch=1,
        published_at=NOON,
        **{"status": Status.ACTIVE, **given},
    )


def groups_of(
    *tables: StreamTable, memory: ScheduleState | None = None, running: frozenset[str] = frozenset()
) -> tuple[ScheduledGroup, ...]:
    graph = LiveGraph()
    graph.follow(tables)
    return agenda(
        State(stream_tables=tables), Settings(), graph.groups, memory or ScheduleState(), running
    )


def one_due(*relations: str, cause: Cause = Cause.SCHEDULE, since: datetime = NOON) -> Due:
    return Due(relations, since, cause, Tier.HOT)


DIAMOND = (table("b", "s"), table("c", "s", schedule=None), table("d", "b", "c", schedule=None))


class TestAgenda:
    def test_a_table_without_rows_waits_for_its_schedule_and_keeps_nobody_waiting(self) -> None:
        new = {"epoch": 0, "published_at": None, "created_at": NOON, "awaits_rebuild": True}
        begun = replace(table("d", "b", "c", schedule="1h"), **new)
        found = groups_of(*DIAMOND[:2], begun)
        assert [[one.relation for one in group.members] for group in found] == [["b"], ["c"], ["d"]]
        assert [one.relations for one in due(NOON + 2 * SECOND, found, LAZY)] == [("b",)]
        assert ("d",) in [one.relations for one in due(NOON + 3600 * SECOND, found, LAZY)]

    def test_a_chain_is_three_groups_each_after_what_it_reads(self) -> None:
        found = groups_of(table("z", "s"), table("y", "z"), table("x", "y"))
        assert [[one.relation for one in group.members] for group in found] == [["z"], ["y"], ["x"]]

    def test_a_diamond_is_one_group(self) -> None:
        (group,) = groups_of(*DIAMOND)
        assert {one.relation for one in group.members} == {"b", "c", "d"}
        assert [one.relation for one in group.members][-1] == "d"

    def test_a_diamond_that_is_not_atomic_is_its_tables(self) -> None:
        apart = {"diamond_consistency": "none"}
        tables = [table(t.name, *t.inputs, options=apart) for t in DIAMOND]
        assert [len(group.members) for group in groups_of(*tables)] == [1, 1, 1]

    def test_the_last_attempt_counts_more_than_the_last_publish(self) -> None:
        memory = ScheduleState(last={"a": NOON + SECOND})
        (group,) = groups_of(table("a", "s"), memory=memory)
        assert group.members[0].last == NOON + SECOND
        (group,) = groups_of(table("a", "s"))
        assert group.members[0].last == NOON

    def test_what_runs_is_not_due(self) -> None:
        later = NOON + 2 * SECOND
        assert due(later, groups_of(table("a", "s")), LAZY)
        assert not due(later, groups_of(table("a", "s"), running=frozenset({"a"})), LAZY)

    def test_a_table_is_read_if_reads_have_grown_since_its_attempt(self) -> None:
        memory = ScheduleState(reads={"a": ReadActivity.begin(ScanCounters(NOON, 7, 0))})
        frozen = table("a", "s", options={"tier": "frozen"})
        later = NOON + timedelta(minutes=1)
        assert not due(later, groups_of(frozen, memory=memory), LAZY), "it was not read since"
        memory.reads["a"] = memory.reads["a"].then(ScanCounters(NOON + SECOND, 8, 0))
        (found,) = due(later, groups_of(frozen, memory=memory), LAZY)
        assert found.cause is Cause.READ
        memory.attempted(["a"], later)
        assert not due(later + LAZY, groups_of(frozen, memory=memory), LAZY)

    def test_unread_automatic_tables_get_colder(self) -> None:
        memory = ScheduleState(reads={"a": ReadActivity.begin(ScanCounters(NOON, 0, 0))})
        automatic = table("a", "s", options={"tier": "auto"})
        tiers = []
        for minutes in (0, 6, 61):
            moment = NOON + timedelta(minutes=minutes)
            memory.reads["a"] = memory.reads["a"].then(
                ScanCounters(moment, 5 * minutes, 5 * minutes)
            )
            (group,) = groups_of(automatic, memory=memory)
            tiers.append(group.members[0].tier)
        assert tiers == [Tier.HOT, Tier.COLD, Tier.FROZEN], "our own scans are no reads"


class TestFollowed:
    def test_manual_tables_are_left_alone(self) -> None:
        assert followed(groups_of(table("a", "s"), table("b", "s", schedule=None))) == {"a"}

    def test_manual_tables_of_a_group_are_refreshed_with_it(self) -> None:
        assert followed(groups_of(*DIAMOND)) == {"b", "c", "d"}

    def test_calculated_ones_follow_their_readers(self) -> None:
        above = table("a", "s", schedule="calculated")
        assert followed(groups_of(above)) == frozenset()
        assert followed(groups_of(above, table("b", "a"))) == {"a", "b"}


class TestStartable:
    READS = {"a": ("s",), "b": ("a",), "c": ("b",), "x": ("s",)}

    def test_a_chain_is_started_from_its_head(self) -> None:
        chain = [one_due("a"), one_due("b"), one_due("c")]
        start, idle = startable(chain, self.READS, frozenset({"a", "b"}), NONE, {})
        assert (start, idle) == ((one_due("a"),), ())

    def test_readers_wait_while_it_runs_and_others_do_not(self) -> None:
        waiting = [one_due("b"), one_due("c"), one_due("x")]
        start, idle = startable(waiting, self.READS, frozenset({"x"}), frozenset({"a"}), {})
        assert (start, idle) == ((one_due("x"),), ())

    def test_what_lacks_nothing_is_idle(self) -> None:
        waiting = [one_due("a"), one_due("b")]
        start, idle = startable(waiting, self.READS, frozenset({"b"}), NONE, {})
        assert (start, idle) == ((one_due("b"),), (one_due("a"),))

    def test_a_reader_waits_for_one_refresh_and_not_for_the_next(self) -> None:
        chain, lacking = [one_due("a"), one_due("b")], frozenset({"a", "b"})
        ended = {"a": NOON - SECOND}
        assert startable(chain, self.READS, lacking, NONE, ended) == ((one_due("a"),), ())
        ended = {"a": NOON}
        assert startable(chain, self.READS, lacking, NONE, ended) == (tuple(chain), ())
        running = frozenset({"a"})
        assert startable(chain[1:], self.READS, lacking, running, ended) == ((one_due("b"),), ())

    def test_a_reader_with_nothing_to_do_keeps_nobody_waiting(self) -> None:
        """It is not idle: what it reads is refreshed again. But that may go on for ever."""
        reads = {**self.READS, "c": ("b", "s")}
        due, lacking = [one_due("a"), one_due("b"), one_due("c")], frozenset({"a", "c"})
        found = startable(due, reads, lacking, NONE, {"a": NOON})
        assert found == ((one_due("a"), one_due("c")), ())

    @pytest.mark.parametrize("takes", [0.4, 1.0, 1.3, 7.0])
    def test_a_chain_moves_under_any_load(self, takes: float) -> None:
        """Changes come all the time, and every refresh brings one to those that read it."""
        tables = (table("a", "s"), table("b", "a"), table("c", "b"))
        state, graph = State(stream_tables=tables), LiveGraph()
        graph.follow(tables)
        memory, ends = ScheduleState(), dict[str, datetime]()
        starts: dict[str, list[datetime]] = {one.relation: [] for one in tables}
        now = NOON
        while now < NOON + timedelta(minutes=1):
            now += timedelta(milliseconds=200)
            for name in [name for name, end in ends.items() if end <= now]:
                del ends[name]
                memory.ended[name] = now
            running = frozenset(ends)
            groups = agenda(state, Settings(), graph.groups, memory, running)
            start, _ = startable(
                due(now, groups, LAZY), self.READS, frozenset("abc"), running, memory.ended
            )
            for group in start:
                (name,) = group.relations
                memory.attempted([name], now)
                starts[name].append(now)
                ends[name] = now + timedelta(seconds=takes)
        longest = timedelta(seconds=3 * max(takes, 1.0) + 1)
        for moments in starts.values():
            pauses = [later - one for one, later in pairwise([NOON, *moments, now])]
            assert max(pauses) <= longest


class TestPassed:
    GROUPS = groups_of(table("a", "s"), table("b", "s", schedule="0 6 * * *"))
    IDLE = (one_due("a"), one_due("b"), one_due("a", cause=Cause.READ))

    def test_a_period_stays_due_and_a_moment_passes(self) -> None:
        assert passed(self.IDLE, self.GROUPS, NOON) == self.IDLE[1:]

    def test_a_moment_waits_until_sources_were_asked_after_it(self) -> None:
        """A change committed before the moment may not have been seen yet."""
        assert passed(self.IDLE, self.GROUPS, NOON - SECOND) == self.IDLE[2:]

    def test_nothing_passes_while_a_database_does_not_answer(self) -> None:
        """What was committed there before belongs to this refresh, not to tomorrow's."""
        assert passed(self.IDLE, self.GROUPS, NOON + SECOND, frozenset("b")) == self.IDLE[2:]
        assert passed(self.IDLE, self.GROUPS, NOON + SECOND, frozenset("ab")) == ()


class TestMemory:
    def test_an_attempt_ends_the_wait_after_a_failure(self) -> None:
        memory = ScheduleState(retry_at={"a": NOON, "b": NOON})
        memory.attempted(["a"], NOON)
        assert (memory.last, memory.retry_at) == ({"a": NOON}, {"b": NOON})

    def test_outages_are_counted_in_a_row(self) -> None:
        memory = ScheduleState()
        assert [memory.missed(["a"]), memory.missed(["a", "b"])] == [1, 2]
        memory.found(["a"])
        assert memory.outages == {"b": 1}

    def test_tables_that_are_gone_are_forgotten(self) -> None:
        memory = ScheduleState({"a": NOON, "b": NOON}, {"b": NOON}, {"b": 1}, ended={"b": NOON})
        memory.keep({"a"})
        assert memory == ScheduleState({"a": NOON})
