"""Tiers by reads that are not our own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schedule.tiers import (
    FROZEN_AFTER,
    REPORTED_WITHIN,
    WATCHED,
    ReadActivity,
    ScanCounters,
    Tier,
    classify,
    decline,
    per_minute,
    with_demand_of_readers,
)
from tests.schedule.simulation import START

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def watched(*counters: tuple[float, int, int]) -> ReadActivity:
    """Samples of (seconds, scans, our own)."""
    first, *others = (ScanCounters(START + at * SECOND, scans, own) for at, scans, own in counters)
    reads = ReadActivity.begin(first)
    for sample in others:
        reads = reads.then(sample)
    return reads


def reading(a_minute: float, minutes: int) -> ReadActivity:
    """Reads at a steady rate, looked at every six seconds, beside our own scans."""
    looks = range(0, minutes * 60 + 1, 6)
    return watched(*((at, 1000 + int(a_minute * at / 60) + at, at) for at in looks))


@pytest.mark.parametrize(
    ("a_minute", "tier"),
    [(100, Tier.HOT), (11, Tier.HOT), (10, Tier.WARM), (1, Tier.WARM), (0.5, Tier.COLD)],
)
def test_tiers_by_reads_a_minute(a_minute: float, tier: Tier) -> None:
    assert classify(reading(a_minute, 120)) is tier


def test_no_read_for_an_hour_is_frozen() -> None:
    assert classify(reading(0, 59)) is Tier.COLD
    assert classify(reading(0, 60)) is Tier.FROZEN


def test_an_hour_after_the_last_read() -> None:
    hour = FROZEN_AFTER / SECOND
    before = watched((0, 0, 0), (600, 1, 0), (600 + hour - 1, 1, 0))
    assert classify(before) is Tier.COLD
    assert classify(before.then(ScanCounters(START + (600 + hour) * SECOND, 1, 0))) is Tier.FROZEN


def test_what_was_not_watched_yet_is_hot() -> None:
    assert classify(watched((0, 50, 0))) is Tier.HOT
    assert classify(watched((0, 50, 0), (WATCHED / SECOND - 1, 50, 0))) is Tier.HOT
    assert classify(watched((0, 50, 0), (WATCHED / SECOND, 50, 0))) is Tier.COLD


def test_what_is_read_again_is_hot_soon() -> None:
    quiet = reading(0, 120)
    assert classify(quiet) is Tier.FROZEN
    last = quiet.last
    busy = quiet.then(ScanCounters(last.at + 6 * SECOND, last.scans + 60, last.own))
    assert classify(busy) is Tier.HOT


def test_our_own_scans_are_no_reads() -> None:
    reads = watched((0, 0, 0), (60, 5, 5), (120, 12, 10))
    assert reads.total == 2


def test_our_own_scans_that_are_reported_late_are_no_reads() -> None:
    """We know of three scans at once, PostgreSQL reports them by and by."""
    reads = watched((0, 10, 0), (1, 10, 3), (2, 12, 3), (3, 13, 3))
    assert reads.total == 0
    assert reads.then(ScanCounters(START + 4 * SECOND, 14, 3)).total == 1


@pytest.mark.parametrize(("scans", "own"), [(0, 0), (4, 90), (300, 0)])
def test_counters_that_went_back_are_no_reads(scans: int, own: int) -> None:
    reads = watched((0, 100, 50), (60, 105, 50), (120, scans, own), (180, scans + 2, own))
    assert reads.total == 5 + 2


def test_a_clock_that_was_set_back_restarts_the_watch() -> None:
    before = reading(5, 10)
    reads = before.then(ScanCounters(START - 60 * MINUTE, before.last.scans + 9, before.last.own))
    assert reads.total == before.total
    assert reads.since == START - 60 * MINUTE
    assert classify(reads) is Tier.HOT


def test_a_watch_of_a_day_stays_small() -> None:
    reads = reading(60, 24 * 60)
    assert len(reads.recent) <= WATCHED / (6 * SECOND)


steps = st.lists(
    st.tuples(st.integers(1, 400), st.integers(0, 5), st.integers(0, 4), st.booleans()), max_size=30
)


@settings(deadline=None)
@given(steps)
def test_every_read_is_counted_once_however_late_it_is_reported(
    found: list[tuple[int, int, int, bool]],
) -> None:
    """Others' reads are reported at once; ours are known at once, and reported now or later."""
    at, scans, own, late, others = 0, 0, 0, 0, 0
    counters = [(0.0, 0, 0)]
    for seconds, reads, ours, held_back in found:
        at += seconds
        others += reads
        own += ours
        late = late + ours if held_back else 0
        scans = others + own - late
        counters.append((at, scans, own))
    watch = watched(*counters)
    assert others - late <= watch.total <= others
    assert watch.then(ScanCounters(START + (at + 1) * SECOND, others + own, own)).total == others


def test_an_automatic_table_is_as_hot_as_its_hottest_reader() -> None:
    tiers = {"a": Tier.FROZEN, "b": Tier.COLD, "c": Tier.WARM, "d": Tier.HOT, "e": Tier.FROZEN}
    reads = {"a": ["source"], "b": ["a"], "c": ["b", "e"], "d": ["c"]}
    assert with_demand_of_readers(tiers, {"a", "b"}, reads) == {
        "a": Tier.WARM,
        "b": Tier.WARM,
        "c": Tier.WARM,
        "d": Tier.HOT,
        "e": Tier.FROZEN,
    }


def test_tiers_by_hand_stand() -> None:
    tiers = {"a": Tier.FROZEN, "b": Tier.HOT}
    assert with_demand_of_readers(tiers, set(), {"b": ["a"]}) == tiers


NAMES = "abcdef"
graphs = st.fixed_dictionaries(
    {name: st.frozensets(st.sampled_from(NAMES + "z"), max_size=3) for name in NAMES}
)
classified = st.fixed_dictionaries({name: st.sampled_from(Tier) for name in NAMES})


@settings(deadline=None)
@given(classified, st.frozensets(st.sampled_from(NAMES)), graphs)
def test_demand_is_what_walking_down_finds(
    tiers: Mapping[str, Tier], automatic: frozenset[str], reads: Mapping[str, Iterable[str]]
) -> None:
    def walked(name: str, seen: frozenset[str]) -> Tier:
        if name not in automatic or name in seen:
            return tiers[name]
        readers = [reader for reader, inputs in reads.items() if name in inputs]
        found = [tiers[name], *(walked(reader, seen | {name}) for reader in readers)]
        return min(found, key=lambda tier: tier.rank)

    expected = {name: walked(name, frozenset()) for name in NAMES}
    assert with_demand_of_readers(tiers, automatic, reads) == expected


class TestEarlyScans:
    """Our own scans from before the watch, which PostgreSQL has not reported yet when it begins."""

    def test_they_are_no_reads_when_they_come(self) -> None:
        reads = ReadActivity.begin(ScanCounters(START, 1, 4))
        reads = reads.then(ScanCounters(START + SECOND, 2, 5))
        assert (reads.total, reads.early, reads.ahead) == (0, 3, 0)
        reads = reads.then(ScanCounters(START + 2 * SECOND, 6, 5))
        assert (reads.total, reads.early, reads.ahead) == (1, 0, 0)

    def test_after_a_while_they_are_not_waited_for(self) -> None:
        reads = ReadActivity.begin(ScanCounters(START, 0, 1000))
        reads = reads.then(ScanCounters(START + 2 * REPORTED_WITHIN, 3, 1000))
        assert (reads.total, reads.early) == (3, 0)


def test_reads_a_minute() -> None:
    assert per_minute(reading(10, 120)) == 10
    assert per_minute(reading(0, 120)) == 0


def test_what_comes_next_if_nobody_reads() -> None:
    reads = reading(30, 60)
    assert [tier for _, tier in decline(reads)] == [Tier.WARM, Tier.COLD, Tier.FROZEN]
    (warm, _), (cold, _), (frozen, _) = decline(reads)
    last = reads.last.at
    assert last < warm < cold <= last + WATCHED
    assert frozen == last + FROZEN_AFTER
    assert decline(reading(0, 60)) == (), "frozen already"


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(0, 80)), max_size=30),
    st.integers(0, 2 * 3600),
)
def test_a_decline_is_what_samples_without_reads_find(
    steps: list[tuple[int, int]], later: int
) -> None:
    reads = watched((0, 0, 0))
    for seconds, count in steps:
        last = reads.last
        at, scans = last.at + seconds * SECOND, last.scans + count
        reads = reads.then(ScanCounters(at, scans, 0))
    moment = reads.last.at + later * SECOND
    then = reads.then(ScanCounters(moment, reads.last.scans, 0))
    expected = [tier for at, tier in decline(reads) if at <= moment]
    assert classify(then) is (expected[-1] if expected else classify(reads))
