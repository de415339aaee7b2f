"""Lag, split into what a table has not taken in itself and what it inherits."""

from __future__ import annotations

from datetime import datetime, timedelta

from headrace.observe.lag import Lag, lags
from tests.observe.states import NOON, state_of, table

ZERO = timedelta(0)
# When the change of an epoch became available: so many seconds before noon.
AGES = {3: 30, 4: 20, 5: 5}


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def available(relation: str, after: int) -> datetime | None:
    epoch = min((one for one in AGES if one > after), default=None)
    return None if epoch is None else NOON - seconds(AGES[epoch])


def test_a_table_that_lacks_nothing_has_none() -> None:
    # The cut of epoch 5 has nothing of s: the log of s ends at 2.
    state = state_of({"s": 2, "a": 2}, table("a", {"s": 2}, 2), epoch=5)
    assert lags(state, available, NOON) == {"a": Lag(ZERO, ZERO)}


def test_the_oldest_change_that_is_lacking_counts() -> None:
    state = state_of({"s": 5, "t": 5, "a": 2}, table("a", {"s": 4, "t": 3}, 4))
    assert lags(state, available, NOON)["a"] == Lag(seconds(20), ZERO)


def test_readers_inherit_the_largest_lag_below() -> None:
    state = state_of(
        {"s": 5, "a": 4, "b": 3, "c": 3},
        table("a", {"s": 4}, 4),
        table("b", {"a": 3}, 3),
        table("c", {"b": 3}, 3),
    )
    assert lags(state, available, NOON) == {
        "a": Lag(seconds(5), ZERO),
        "b": Lag(seconds(20), seconds(5)),
        "c": Lag(ZERO, seconds(20)),
    }


def test_tables_that_read_each_other() -> None:
    state = state_of(
        {"s": 5, "a": 3, "b": 3, "c": 3},
        table("a", {"s": 3, "b": 3}, 3),
        table("b", {"a": 3}, 3),
        table("c", {"b": 3}, 3),
    )
    assert lags(state, available, NOON) == {
        "a": Lag(seconds(20), ZERO),
        "b": Lag(ZERO, seconds(20)),
        "c": Lag(ZERO, seconds(20)),
    }


def test_what_is_not_known_is_not_zero() -> None:
    state = state_of({"s": 5, "a": 0, "b": 4}, table("a", {"s": 0}, 0), table("b", {"s": 4}, 4))
    assert lags(state, available, NOON)["a"].own is None
    unreadable = lags(state, lambda relation, after: None, NOON)
    assert unreadable["b"].own is None


def test_a_clock_that_is_ahead_makes_no_negative_lag() -> None:
    state = state_of({"s": 5, "a": 4}, table("a", {"s": 4}, 4))
    assert lags(state, available, NOON - timedelta(hours=1))["a"].own == ZERO


def test_a_database_that_cannot_be_read_counts_from_its_first_failure() -> None:
    state = state_of(
        {"s": 5, "a": 5, "b": 5},
        table("a", {"s": 5}, 5),
        table("b", {"a": 5}, 5),
        failing_since=NOON - seconds(90),
        failure="the disk is full",
    )
    assert lags(state, available, NOON) == {
        "a": Lag(seconds(90), ZERO),
        "b": Lag(ZERO, seconds(90)),
    }


def test_a_change_that_was_lacking_before_its_database_failed() -> None:
    state = state_of(
        {"s": 5, "a": 3}, table("a", {"s": 3}, 3), failing_since=NOON - seconds(10), failure="no"
    )
    assert lags(state, available, NOON)["a"] == Lag(seconds(20), ZERO)
