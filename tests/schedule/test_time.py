"""Hours and days of a scheduler, simulated: clocks that jump, overruns, comings and goings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.catalog.records import Status
from headrace.graph.policy import Policy
from headrace.schedule.cron import Cron
from headrace.schedule.due import Cause, Member, ScheduledGroup, due, next_due
from headrace.schedule.schedule import Every, Timed, moment_after
from headrace.schedule.tiers import Tier
from tests.schedule.simulation import LAZY, START, World, alone, timed

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def test_six_hours_of_three_schedules() -> None:
    tables = {"a": "30s", "b": "1h30m", "c": "15 * * * *"}
    world = World(alone(*(Member(name, timed(text)) for name, text in tables.items())))
    world.run(START + 6 * HOUR)
    assert world.starts("a") == [START + number * 30 * SECOND for number in range(720)]
    assert world.starts("b") == [START + number * 90 * MINUTE for number in range(4)]
    fires = [START + number * HOUR + 15 * MINUTE for number in range(6)]
    assert world.starts("c") == [START, *fires]


def test_an_overrun_skips_turns_and_never_piles_up() -> None:
    world = World(alone(Member("a", timed("1m"))), takes=150 * SECOND)
    world.run(START + HOUR)
    assert world.starts("a") == [START + number * 150 * SECOND for number in range(24)]
    cron = World(alone(Member("a", timed("*/10 * * * *"))), takes=25 * MINUTE)
    cron.run(START + 2 * HOUR)
    # Fires at 10 and 20 past are missed while it runs: one refresh at 25 past makes them good.
    assert cron.starts("a") == [START + number * 25 * MINUTE for number in range(5)]


def test_a_refresh_that_ends_in_time_waits_for_its_turn() -> None:
    world = World(alone(Member("a", timed("1m"))), takes=50 * SECOND)
    world.run(START + 10 * MINUTE)
    assert world.starts("a") == [START + number * MINUTE for number in range(10)]


def test_a_clock_that_jumps_forward_makes_each_due_once() -> None:
    members = (Member("a", timed("30s")), Member("b", timed("0 * * * *")))
    world = World(alone(*members))
    world.run(START + 10 * MINUTE)
    world.log.clear()
    world.now += timedelta(days=3)
    world.tick()
    world.tick()
    assert [one.relations for _, one in world.log] == [("a",), ("b",)]


def test_a_clock_that_jumps_back_makes_each_due_once_and_starves_none() -> None:
    members = (Member("a", timed("30s")), Member("b", timed("0 * * * *")), Member("c", timed("1d")))
    world = World(alone(*members))
    world.run(START + 10 * MINUTE)
    world.log.clear()
    back = START - timedelta(days=2) - 30 * MINUTE
    world.now = back
    world.run(back + HOUR)
    assert [(moment, one.cause) for moment, one in world.log][:3] == [(back, Cause.CLOCK)] * 3
    assert world.starts("a") == [back + number * 30 * SECOND for number in range(120)]
    assert world.starts("b") == [back, back + 30 * MINUTE]
    assert world.starts("c") == [back]


def test_nothing_happens_to_durations_when_daylight_saving_begins_or_ends() -> None:
    for change in (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)):
        begin = change - 3 * HOUR
        world = World(alone(Member("a", timed("20m"))), now=begin)
        world.run(change + 3 * HOUR)
        assert world.starts("a") == [begin + number * 20 * MINUTE for number in range(18)]


def test_a_daily_line_fires_once_a_day_when_daylight_saving_begins_or_ends() -> None:
    shown = {
        datetime(2026, 3, 29, tzinfo=UTC): ["28 01:30", "29 01:00", "30 00:30"],
        datetime(2026, 10, 25, tzinfo=UTC): ["24 00:30", "25 00:30", "26 01:30"],
    }
    for day, expected in shown.items():
        begin = day - timedelta(days=1)
        member = Member("a", timed("30 2 * * * Europe/Berlin"), last=begin)
        world = World(alone(member), now=begin)
        world.run(begin + timedelta(days=3))
        assert [moment.strftime("%d %H:%M") for moment in world.starts("a")] == expected
        assert {one.cause for _, one in world.log} == {Cause.SCHEDULE}


def test_a_table_made_between_two_ticks_is_due_at_the_next() -> None:
    world = World(alone(Member("a", timed("1m"))))
    world.run(START + 90 * SECOND)
    world.groups += alone(Member("b", timed("1m"), last=world.now - 10 * SECOND))
    world.run(START + 4 * MINUTE)
    assert world.starts("a") == [START + number * MINUTE for number in range(4)]
    assert world.starts("b") == [START + (80 + 60 * number) * SECOND for number in (1, 2)]


def test_a_table_dropped_between_two_ticks_is_not_due_any_more() -> None:
    world = World(alone(Member("a", timed("1m")), Member("b", timed("1m"))), takes=10 * SECOND)
    world.run(START + 65 * SECOND)
    world.groups = alone(world.member("b"))
    world.run(START + 5 * MINUTE)
    assert world.starts("a") == [START, START + MINUTE]
    assert world.starts("b") == [START + number * MINUTE for number in range(5)]


def test_a_group_that_a_new_table_joins() -> None:
    world = World(alone(Member("b", timed("1m")), Member("c", timed("10m"))))
    world.run(START + 90 * SECOND)
    joined = Member("d", timed(), last=world.now)
    world.groups = (ScheduledGroup((world.member("b"), world.member("c"), joined)),)
    world.log.clear()
    world.run(START + 4 * MINUTE)
    assert [one.relations for _, one in world.log] == [("b", "c", "d")] * 2


def test_fastest_and_slowest_over_an_hour() -> None:
    members = (Member("b", timed("1m")), Member("c", timed("*/10 * * * *")), Member("d", timed()))
    fast = World((ScheduledGroup(members, "fastest"),))
    fast.run(START + HOUR)
    assert len(fast.starts("d")) == 60
    slow = World((ScheduledGroup(members, "slowest"),))
    slow.run(START + HOUR)
    assert slow.starts("d") == [START + number * 10 * MINUTE for number in range(6)]


def test_none_mode_over_an_hour() -> None:
    members = (Member("b", timed("1m")), Member("c", timed("*/10 * * * *")), Member("d", timed()))
    world = World(alone(*members))
    world.run(START + HOUR)
    assert [len(world.starts(name)) for name in "bcd"] == [60, 6, 0]


def test_reads_wake_a_frozen_table_once_each() -> None:
    world = World(alone(Member("a", timed("1m"), Tier.FROZEN, last=START)))
    world.run(START + HOUR)
    assert world.log == []
    world.change("a", read=True)
    world.run(START + 2 * HOUR)
    assert world.starts("a") == [START + HOUR]


def test_reads_of_a_cold_table_are_answered_at_most_as_often_as_the_timeout_says() -> None:
    world = World(alone(Member("a", timed("1h"), Tier.COLD, last=START)))
    for second in range(60):
        world.change("a", read=True)
        world.run(START + (second + 1) * SECOND)
    assert world.starts("a") == [START + number * LAZY for number in range(1, 12)]


schedules = st.one_of(
    st.timedeltas(SECOND / 10, timedelta(days=2)).map(Every),
    st.sampled_from(
        [
            Cron("*/7 * * * *", "UTC"),
            Cron("30 2 * * *", "Europe/Berlin"),
            Cron("*/30 * * * *", "Australia/Lord_Howe"),
            Cron("0 1-3 * * sun", "America/New_York"),
        ]
    ),
)
gaps = st.lists(st.timedeltas(SECOND / 100, timedelta(days=1)), min_size=1, max_size=40)
# The first hours of 2026 in which some zone changes its clocks, and a quiet one.
begins = st.sampled_from(
    [
        START,
        datetime(2026, 3, 28, 22, tzinfo=UTC),
        datetime(2026, 10, 3, 12, tzinfo=UTC),
        datetime(2026, 10, 24, 23, tzinfo=UTC),
    ]
)


@settings(deadline=None)
@given(schedules, begins, gaps, st.timedeltas(timedelta(), 3 * HOUR))
def test_never_twice_in_one_period(
    schedule: Timed, begin: datetime, ticks: Sequence[timedelta], takes: timedelta
) -> None:
    world = World(alone(Member("a", frozenset({schedule}))), takes, begin)
    for gap in (timedelta(), *ticks):
        world.now += gap
        world.tick()
        assert due(world.now, world.groups, LAZY) == ()
    for earlier, later in pairwise(world.starts("a")):
        turn = moment_after(schedule, earlier)
        assert turn is not None and turn <= later
        assert later >= earlier + takes


@settings(deadline=None)
@given(schedules, begins, gaps, st.timedeltas(timedelta(), 3 * HOUR))
def test_never_starved(
    schedule: Timed, begin: datetime, ticks: Sequence[timedelta], takes: timedelta
) -> None:
    """At the first tick at which its turn has come and it does not run, it is started."""
    world = World(alone(Member("a", frozenset({schedule}))), takes, begin)
    world.tick()
    for gap in ticks:
        world.now += gap
        last = world.starts("a")[-1]
        turn = moment_after(schedule, last)
        assert turn is not None
        expected = turn <= world.now and last + takes <= world.now
        assert bool(world.tick()) == expected


tables = st.builds(
    Member,
    relation=st.just("a"),
    schedules=st.frozensets(schedules, max_size=2),
    tier=st.sampled_from(Tier),
    last=st.none() | st.timedeltas(-HOUR, timedelta(days=3)).map(lambda ago: START - ago),
    read=st.booleans(),
    retry_at=st.none() | st.timedeltas(-HOUR, HOUR).map(lambda ago: START - ago),
    status=st.sampled_from([Status.ACTIVE, Status.ACTIVE, Status.ERROR, Status.SUSPENDED]),
    running=st.sampled_from([False, False, False, True]),
)
groups = st.lists(tables, min_size=1, max_size=4).map(
    lambda found: tuple(replace(one, relation=str(n)) for n, one in enumerate(found))
)


# Of a clock that was never set back.
sane = groups.map(
    lambda found: tuple(replace(one, last=one.last and min(one.last, START)) for one in found)
)


@settings(deadline=None)
@given(groups)
def test_slowest_is_due_only_when_fastest_is(members: tuple[Member, ...]) -> None:
    slow, fast = (ScheduledGroup(members, one) for one in ("slowest", "fastest"))
    assert relations(START, [slow]) <= relations(START, [fast])


@settings(deadline=None)
@given(sane, sane, st.sampled_from(["fastest", "slowest"]))
def test_looking_when_the_next_is_due_misses_nothing(
    members: tuple[Member, ...], others: tuple[Member, ...], policy: Policy
) -> None:
    singles = (replace(one, relation=f"{one.relation} alone") for one in others)
    found = [ScheduledGroup(members, policy), *alone(*singles)]
    now, moment = relations(START, found), next_due(START, found, LAZY)
    if moment is None:
        assert relations(START + timedelta(days=400), found) == now
        return
    assert moment > START
    assert relations(moment - timedelta(microseconds=1), found) == now
    assert relations(moment, found) > now


def relations(now: datetime, found: Sequence[ScheduledGroup]) -> set[tuple[str, ...]]:
    return {one.relations for one in due(now, found, LAZY)}
