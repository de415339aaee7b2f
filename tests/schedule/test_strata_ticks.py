"""Counting by strata what a tick refreshed and what it skipped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headrace.catalog.records import StratumTicks
from headrace.schedule.strata_ticks import TickCounter

NOON = datetime(2026, 3, 26, 12, tzinfo=UTC)
LATER = NOON + timedelta(seconds=1)
STRATA = frozenset({0, 1, 2})
NONE: frozenset[int] = frozenset()


def test_a_tick_in_which_nothing_was_started_is_not_counted() -> None:
    ticks = TickCounter()
    assert ticks.end(STRATA, NONE, NOON) == frozenset()
    assert ticks.take() == ()


def test_strata_without_a_refresh_are_skipped() -> None:
    ticks = TickCounter()
    ticks.started([0])
    ticks.started([0, 1])
    assert ticks.end(STRATA, NONE, NOON) == {2}
    assert ticks.take() == (
        StratumTicks(0, 1, 0, False, NOON),
        StratumTicks(1, 1, 0, False, NOON),
        StratumTicks(2, 0, 1, True, NOON),
    )
    assert ticks.take() == (), "they are counted once"


def test_a_stratum_that_waits_is_not_skipped() -> None:
    ticks = TickCounter()
    ticks.started([0])
    assert ticks.end(STRATA, frozenset({1}), NOON) == {2}
    waiting = next(one for one in ticks.take() if one.stratum == 1)
    assert (waiting.refreshed, waiting.skipped, waiting.skipped_last) == (0, 0, False)


def test_ticks_add_up_and_the_last_is_reported() -> None:
    ticks = TickCounter()
    for moment, strata in ((NOON, [0, 1]), (LATER, [2])):
        ticks.started(strata)
        ticks.end(STRATA, NONE, moment)
    assert ticks.take() == (
        StratumTicks(0, 1, 1, True, LATER),
        StratumTicks(1, 1, 1, True, LATER),
        StratumTicks(2, 1, 1, False, LATER),
    )
