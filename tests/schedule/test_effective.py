"""Calculated schedules are those of the readers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schedule.cron import Cron
from headrace.schedule.effective import effective_schedules
from headrace.schedule.schedule import Calculated, Every, Schedule, Timed

FAST = Every(timedelta(seconds=10))
SLOW = Every(timedelta(hours=1))
NIGHTLY = Cron("0 3 * * *", "Europe/Berlin")
CALCULATED = Calculated()


def test_a_table_follows_its_own_schedule_and_a_manual_one_follows_none() -> None:
    found = effective_schedules({"a": FAST, "b": None}, {"a": ["source"], "b": ["a"]})
    assert found == {"a": {FAST}, "b": frozenset()}


def test_a_calculated_table_follows_all_of_its_readers() -> None:
    schedules = {"a": CALCULATED, "b": FAST, "c": NIGHTLY, "d": None}
    found = effective_schedules(schedules, {"b": ["a"], "c": ["a", "source"], "d": ["a"]})
    assert found["a"] == {FAST, NIGHTLY}


def test_through_calculated_readers_but_not_through_others() -> None:
    schedules = {"a": CALCULATED, "b": CALCULATED, "c": SLOW, "d": FAST}
    found = effective_schedules(schedules, {"b": ["a"], "c": ["b"], "d": ["c"]})
    assert found["a"] == found["b"] == {SLOW}


def test_a_calculated_table_that_nothing_scheduled_reads_follows_none() -> None:
    found = effective_schedules({"a": CALCULATED, "b": None}, {"b": ["a"]})
    assert found["a"] == frozenset()


def test_calculated_tables_that_read_each_other_follow_the_same() -> None:
    schedules = {"a": CALCULATED, "b": CALCULATED, "c": FAST, "d": SLOW}
    found = effective_schedules(schedules, {"a": ["b"], "b": ["a"], "c": ["a"], "d": ["b"]})
    assert found["a"] == found["b"] == {FAST, SLOW}


def test_a_circle_is_open_where_a_member_has_a_schedule_of_its_own() -> None:
    schedules = {"a": CALCULATED, "b": FAST, "c": CALCULATED, "d": SLOW}
    reads = {"b": ["a"], "c": ["b"], "a": ["c"], "d": ["c"]}
    found = effective_schedules(schedules, reads)
    assert found == {"a": {FAST}, "b": {FAST}, "c": {FAST, SLOW}, "d": {SLOW}}


NAMES = "abcdef"
graphs = st.fixed_dictionaries(
    {name: st.frozensets(st.sampled_from(NAMES + "z"), max_size=3) for name in NAMES}
)
plans = st.fixed_dictionaries(
    {name: st.sampled_from([CALCULATED, CALCULATED, FAST, SLOW, NIGHTLY, None]) for name in NAMES}
)


@settings(deadline=None)
@given(plans, graphs)
def test_it_is_what_walking_down_finds(
    schedules: Mapping[str, Schedule | None], reads: Mapping[str, frozenset[str]]
) -> None:
    def walked(name: str, seen: frozenset[str]) -> frozenset[Timed]:
        own = schedules[name]
        if own is None or name in seen:
            return frozenset()
        if not isinstance(own, Calculated):
            return frozenset({own})
        readers = [reader for reader, inputs in reads.items() if name in inputs]
        return frozenset().union(*(walked(reader, seen | {name}) for reader in readers))

    expected = {name: walked(name, frozenset()) for name in NAMES}
    assert effective_schedules(schedules, reads) == expected
