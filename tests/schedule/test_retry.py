"""Waits after failures: their bounds, their growth, and their end."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import (
    BRANCHES,
    HeadraceError,
    InternalError,
    NeedsReinit,
    SchemaChanged,
    Transient,
    Unavailable,
    UserError,
)
from headrace.schedule.retry import OTHERS, OUTSIDE, PASSING, Backoff, after_failure, backoff

RULES = (OUTSIDE, PASSING, OTHERS)


class Drawn(Random):
    """Draws the given values."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def random(self) -> float:
        return self.value


def test_the_branch_decides() -> None:
    assert {branch: backoff(branch) for branch in BRANCHES} == {
        Unavailable: OUTSIDE,
        Transient: PASSING,
        UserError: OTHERS,
        SchemaChanged: OTHERS,
        NeedsReinit: OTHERS,
        InternalError: OTHERS,
    }
    assert backoff(ZeroDivisionError) == OTHERS


def test_bounds_double_up_to_the_longest() -> None:
    seconds = [PASSING.bound(failures) / timedelta(seconds=1) for failures in range(1, 12)]
    assert seconds == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_what_does_not_pass_by_itself_is_retried_more_slowly() -> None:
    for failures in range(1, 40):
        assert OTHERS.bound(failures) > PASSING.bound(failures) >= OUTSIDE.bound(failures)


@pytest.mark.parametrize("rule", RULES)
@settings(deadline=None)
@given(failures=st.integers(1, 10**9))
def test_bounds_grow_and_stay_bounded(rule: Backoff, failures: int) -> None:
    assert rule.first <= rule.bound(failures) <= rule.bound(failures + 1) <= rule.longest
    assert rule.bound(failures + 1) in (rule.longest, 2 * rule.bound(failures))


@settings(deadline=None)
@given(st.sampled_from(BRANCHES), st.integers(1, 200), st.integers(1, 20), st.integers())
def test_waits_are_within_their_bound(
    branch: type[HeadraceError], failures: int, max_failures: int, seed: int
) -> None:
    wait = after_failure(branch, failures, max_failures, Random(seed))
    rule = backoff(branch)
    if rule.patience is None or failures < max_failures * rule.patience:
        assert wait is not None
        assert timedelta() <= wait <= rule.bound(failures)
    else:
        assert wait is None


def test_waits_are_spread_over_the_whole_bound() -> None:
    waits = [after_failure(Transient, 5, 5, Drawn(value)) for value in (0, 0.25, 0.5, 1)]
    assert waits == [part * PASSING.bound(5) for part in (0, 0.25, 0.5, 1)]
    draws = {after_failure(Transient, 5, 5, random) for random in map(Random, range(50))}
    assert len(draws) == 50


def test_the_fifth_failure_suspends() -> None:
    waits = [after_failure(UserError, failures, 5, Random(0)) for failures in range(1, 7)]
    assert [wait is None for wait in waits] == [False, False, False, False, True, True]
    assert after_failure(UserError, 1, 1, Random(0)) is None


def test_what_passes_by_itself_is_given_more_attempts() -> None:
    assert after_failure(Transient, 19, 5, Random(0)) is not None
    assert after_failure(Transient, 20, 5, Random(0)) is None


def test_what_is_missing_outside_suspends_nothing() -> None:
    assert after_failure(Unavailable, 10**6, 1, Random(0)) is not None
