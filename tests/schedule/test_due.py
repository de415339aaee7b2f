"""Who is due, one rule at a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from headrace.catalog.records import Status
from headrace.graph.policy import Policy
from headrace.schedule.due import EVER, Cause, Due, Member, ScheduledGroup, due, next_due
from headrace.schedule.tiers import Tier
from tests.schedule.simulation import LAZY, START, alone, timed

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def seconds_ago(seconds: float, *schedules: str, relation: str = "a") -> Member:
    return Member(relation, timed(*schedules), last=START - seconds * SECOND)


def is_due(member: Member, now: datetime = START) -> bool:
    return bool(due(now, alone(member), LAZY))


def names(groups: tuple[ScheduledGroup, ...], now: datetime = START) -> list[str]:
    return ["".join(one.relations) for one in due(now, groups, LAZY)]


def test_a_period_that_is_over() -> None:
    member = seconds_ago(29.999, "30s")
    assert not is_due(member)
    assert next_due(START, alone(member), LAZY) == START + SECOND / 1000
    member = seconds_ago(30, "30s")
    assert due(START, alone(member), LAZY) == (Due(("a",), START, Cause.SCHEDULE, Tier.HOT),)
    assert next_due(START, alone(member), LAZY) is None


def test_what_was_never_attempted_is_due_at_once() -> None:
    (found,) = due(START, alone(Member("a", timed("1d"))), LAZY)
    assert (found.since, found.cause) == (EVER, Cause.SCHEDULE)


def test_a_manual_table_is_never_due() -> None:
    for tier in Tier:
        member = Member("a", timed(), tier, read=True)
        assert not is_due(member)
        assert next_due(START, alone(member), LAZY) is None


def test_a_cron_line_that_fired_since_the_last_attempt() -> None:
    member = Member("a", timed("0 * * * *"), last=START - MINUTE)
    assert is_due(member)
    (found,) = due(START + MINUTE, alone(member), LAZY)
    assert found.since == START
    member = replace(member, last=START)
    assert not is_due(member)
    assert next_due(START, alone(member), LAZY) == START + HOUR


def test_any_of_several_schedules() -> None:
    member = seconds_ago(40, "1h", "30s")
    assert is_due(member)
    assert not is_due(seconds_ago(20, "1h", "30s"))
    assert is_due(seconds_ago(20, "1h", "0 12 * * *"))


def test_what_runs_is_not_due() -> None:
    member = replace(seconds_ago(100, "30s"), running=True)
    assert not is_due(member)
    assert next_due(START, alone(member), LAZY) is None


@pytest.mark.parametrize("schedule", ["30s", "0 6 * * *"])
def test_a_clock_that_was_set_back(schedule: str) -> None:
    member = seconds_ago(-3600, schedule)
    (found,) = due(START, alone(member), LAZY)
    assert found.cause is Cause.CLOCK
    assert not is_due(replace(member, last=START))


def test_warm_tables_take_every_second_turn() -> None:
    warm = replace(seconds_ago(30, "30s"), tier=Tier.WARM)
    assert not is_due(warm)
    assert next_due(START, alone(warm), LAZY) == START + 30 * SECOND
    assert is_due(warm, START + 30 * SECOND)
    cron = replace(warm, schedules=timed("0 * * * *"), last=START)
    assert next_due(START, alone(cron), LAZY) == START + 2 * HOUR


def test_cold_tables_follow_their_schedule_once_they_were_read() -> None:
    cold = replace(seconds_ago(2, "3s"), tier=Tier.COLD)
    assert next_due(START, alone(cold), LAZY) is None
    assert not is_due(cold, START + HOUR)
    read = replace(cold, read=True)
    assert not is_due(read)
    (found,) = due(START + SECOND, alone(read), LAZY)
    assert found.cause is Cause.SCHEDULE


@pytest.mark.parametrize("tier", [Tier.COLD, Tier.FROZEN])
def test_a_read_of_a_table_that_waits_for_reads_is_answered_in_time(tier: Tier) -> None:
    asleep = replace(seconds_ago(2, "1h"), tier=tier)
    assert not is_due(asleep, START + 10 * HOUR)
    read = replace(asleep, read=True)
    assert not is_due(read)
    assert next_due(START, alone(read), LAZY) == START + 3 * SECOND
    (found,) = due(START + 3 * SECOND, alone(read), LAZY)
    assert (found.cause, found.tier) == (Cause.READ, tier)
    assert is_due(replace(read, last=START - HOUR / 2))


def test_frozen_tables_do_not_follow_their_schedule() -> None:
    frozen = replace(seconds_ago(2, "1s"), tier=Tier.FROZEN)
    assert not is_due(frozen, START + HOUR)
    assert not is_due(replace(frozen, read=True))
    assert next_due(START, alone(replace(frozen, read=True)), LAZY) == START + 3 * SECOND


def test_a_failure_waits_for_its_retry_whatever_the_schedule() -> None:
    failed = replace(seconds_ago(100, "30s"), status=Status.ERROR, retry_at=START + 20 * SECOND)
    assert not is_due(failed)
    assert next_due(START, alone(failed), LAZY) == START + 20 * SECOND
    (found,) = due(START + 20 * SECOND, alone(failed), LAZY)
    assert found.cause is Cause.RETRY
    rarely = replace(failed, schedules=timed("1d"))
    assert is_due(rarely, START + 20 * SECOND)


def test_a_failure_without_a_time_to_retry_follows_its_schedule() -> None:
    assert is_due(replace(seconds_ago(30, "30s"), status=Status.ERROR))
    assert not is_due(replace(seconds_ago(20, "30s"), status=Status.ERROR))


def test_a_clock_that_was_set_back_does_not_put_off_a_retry() -> None:
    failed = replace(seconds_ago(-3600, "30s"), retry_at=START + HOUR + 10 * SECOND)
    (found,) = due(START, alone(failed), LAZY)
    assert found.cause is Cause.CLOCK


def test_a_suspended_table_is_not_due() -> None:
    suspended = replace(seconds_ago(100, "30s"), status=Status.SUSPENDED)
    assert not is_due(suspended)
    assert not is_due(replace(suspended, retry_at=START - MINUTE))
    assert next_due(START, alone(suspended), LAZY) is None


POLICIES: tuple[Policy, ...] = ("fastest", "slowest")


def diamond(policy: Policy = "fastest", **changes: Member) -> ScheduledGroup:
    """b every minute and just over, c every hour, d calculated from nothing."""
    members = {
        "b": seconds_ago(60, "1m", relation="b"),
        "c": seconds_ago(60, "1h", relation="c"),
        "d": Member("d", timed(), last=START - MINUTE),
    }
    return ScheduledGroup(tuple({**members, **changes}.values()), policy)


def test_is_group_due_fastest_any_triggers() -> None:
    assert names((diamond(),)) == ["bcd"]
    assert names((diamond(),), START - SECOND) == []


def test_is_group_due_slowest_all_required() -> None:
    group = diamond("slowest")
    assert names((group,)) == []
    assert next_due(START, (group,), LAZY) == START + HOUR - MINUTE
    assert names((group,), START + HOUR - MINUTE) == ["bcd"]


def test_is_group_due_singleton_bypass() -> None:
    for policy in POLICIES:
        group = ScheduledGroup((seconds_ago(30, "30s"),), policy)
        assert names((group,)) == ["a"]
        assert names((group,), START - SECOND) == []


def test_members_that_go_one_by_one_follow_their_own_schedules() -> None:
    assert names(alone(*diamond("slowest").members)) == ["b"]


def test_a_group_of_manual_tables_is_never_due() -> None:
    for policy in POLICIES:
        group = ScheduledGroup((Member("a", timed()), Member("b", timed())), policy)
        assert names((group,)) == []


def test_a_suspended_member_stops_its_group_and_no_other() -> None:
    suspended = replace(seconds_ago(60, "1m", relation="c"), status=Status.SUSPENDED)
    assert names((diamond(c=suspended),)) == []
    assert names(alone(*diamond(c=suspended).members)) == ["b"]


def test_a_running_member_holds_back_its_group_and_no_other() -> None:
    running = replace(seconds_ago(60, "1m", relation="c"), running=True)
    assert names((diamond(c=running),)) == []
    assert names(alone(*diamond(c=running).members)) == ["b"]


def test_the_last_retry_of_a_group_counts() -> None:
    failed = replace(seconds_ago(60, "1h", relation="c"), retry_at=START + 9 * SECOND)
    later = Member("d", timed(), last=START - MINUTE, retry_at=START + 10 * SECOND)
    group = diamond(c=failed, d=later)
    assert names((group,)) == []
    assert next_due(START, (group,), LAZY) == START + 10 * SECOND
    assert names(alone(*group.members)) == ["b"]


def test_slowest_does_not_wait_for_tables_that_nobody_reads() -> None:
    for tier in (Tier.COLD, Tier.FROZEN):
        asleep = replace(seconds_ago(60, "1h", relation="c"), tier=tier)
        assert names((diamond("slowest", c=asleep),)) == ["bcd"]
    dozing = {
        name: replace(seconds_ago(60, "1m", relation=name), tier=Tier.COLD) for name in ("b", "c")
    }
    assert names((diamond("slowest", **dozing),)) == []


def test_the_tier_of_a_group_is_its_hottest() -> None:
    frozen = replace(seconds_ago(60, "1h", relation="c"), tier=Tier.FROZEN)
    warm = replace(seconds_ago(120, "1m", relation="b"), tier=Tier.WARM)
    cold = Member("d", timed(), Tier.COLD)
    (found,) = due(START, (diamond(b=warm, c=frozen, d=cold),), LAZY)
    assert found.tier is Tier.WARM


def test_a_component_is_due_when_its_tightest_member_is() -> None:
    members = (seconds_ago(60, "1h", relation="a"), seconds_ago(60, "1m", relation="b"))
    assert names((ScheduledGroup(members),)) == ["ab"]


def test_the_zone_of_now_makes_no_difference() -> None:
    second = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)
    member = Member("a", timed("30m"), last=second - 20 * MINUTE)
    for zone in ("UTC", "Europe/Berlin"):
        now = second.astimezone(ZoneInfo(zone))
        assert not is_due(member, now)
        assert next_due(now, alone(member), LAZY) == second + 10 * MINUTE
