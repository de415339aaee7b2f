"""What can be written as a schedule, and what is said about anything else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import UserError
from headrace.schedule.cron import Cron
from headrace.schedule.schedule import (
    HINT,
    LONGEST,
    Calculated,
    Every,
    duration,
    moment_after,
    parse_schedule,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("30s", timedelta(seconds=30)),
        ("1h30m", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        ("2d", timedelta(days=2)),
        ("5m", timedelta(minutes=5)),
        ("90m", timedelta(minutes=90)),
        ("1D 2h 3M 4s 5ms", timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)),
        ("  10s ", timedelta(seconds=10)),
        ("1w", timedelta(weeks=1)),
        ("2w 1d", timedelta(days=15)),
        ("5 minutes", timedelta(minutes=5)),
        ("1 hour 30 mins", timedelta(minutes=90)),
        ("1 Week 2 days 3 hours 1 minute 1 sec", timedelta(9, 3 * 3600 + 61)),
        ("10 milliseconds", timedelta(milliseconds=10)),
    ],
)
def test_durations(text: str, period: timedelta) -> None:
    assert parse_schedule(text, "UTC") == Every(period)


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("*/5 * * * *", Cron("*/5 * * * *", "America/New_York")),
        ("0  6 * *\tmon-fri", Cron("0 6 * * mon-fri", "America/New_York")),
        ("0 6 * * mon-fri Europe/Berlin", Cron("0 6 * * mon-fri", "Europe/Berlin")),
        ("15 14 1 jan,jul * UTC", Cron("15 14 1 jan,jul *", "UTC")),
        ("0 0 L * *", Cron("0 0 L * *", "America/New_York")),
        ("0 * * * * *", Cron("0 * * * * *", "America/New_York")),
        ("*/15 0 6 * * Mon-Fri", Cron("*/15 0 6 * * Mon-Fri", "America/New_York")),
        ("0 0 6 * * 5L", Cron("0 0 6 * * 5L", "America/New_York")),
        ("0 0 6 L * *", Cron("0 0 6 L * *", "America/New_York")),
        ("0 6 * * 5 Libya", Cron("0 6 * * 5", "Libya")),
        ("30 0 6 * * 1 UTC", Cron("30 0 6 * * 1", "UTC")),
        ("@hourly", Cron("0 * * * *", "America/New_York")),
        ("@Daily", Cron("0 0 * * *", "America/New_York")),
        ("@midnight MST", Cron("0 0 * * *", "MST")),
        ("@weekly Europe/Berlin", Cron("0 0 * * 0", "Europe/Berlin")),
        ("@monthly", Cron("0 0 1 * *", "America/New_York")),
        ("@yearly", Cron("0 0 1 1 *", "America/New_York")),
        ("@annually", Cron("0 0 1 1 *", "America/New_York")),
    ],
)
def test_cron_lines(text: str, schedule: Cron) -> None:
    assert parse_schedule(text, "America/New_York") == schedule


@pytest.mark.parametrize("text", ["calculated", "CALCULATED", " Calculated "])
def test_calculated(text: str) -> None:
    assert parse_schedule(text, "UTC") == Calculated()


@pytest.mark.parametrize("text", [None, "", "  "])
def test_nothing_is_manual(text: str | None) -> None:
    assert parse_schedule(text, "UTC") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0s", "longer than nothing"),
        ("36526d", "at most 36525 days"),
        ("999999999999999d", "at most 36525 days"),
        ("30", "neither a duration nor a cron line"),
        ("-30s", "neither a duration nor a cron line"),
        ("1.5h", "neither a duration nor a cron line"),
        ("30m1h", "neither a duration nor a cron line"),
        ("1h30", "neither a duration nor a cron line"),
        ("daily", "neither a duration nor a cron line"),
        ("* * * *", "neither a duration nor a cron line"),
        ("60 * * * *", "bad minute"),
        ("0 24 * * *", "bad hour"),
        ("0 0 32 * *", "bad day-of-month"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 1 13 *", "bad month"),
        ("0 0 * * 9", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("* * */20 * 1L", "no day ever fits"),
        ("0 0 * * * Europe/Nowhere", "there is no time zone 'Europe/Nowhere'"),
        ("0 0 * * * Europe", "there is no time zone 'Europe'"),
        ("0 0 * * * ../zone", "there is no time zone '../zone'"),
        ("60 0 * * * *", "bad second"),
        ("0 0 * * * 9", "bad day-of-week"),
        ("0 0 1 * * L", "bad day-of-week"),
        ("0 0 1 * * l", "bad day-of-week"),
        ("0 0 1 * * L UTC", "bad day-of-week"),
        ("0 0 * * L", "bad day-of-week"),
        ("0 0 1 * * ?", "bad day-of-week"),
        ("0 0 1 * * LW", "bad day-of-week"),
        ("0 0 0 * * * Europe", "there is no time zone 'Europe'"),
        ("0 0 0 * * * UTC UTC", "neither a duration nor a cron line"),
        ("@reboot", "neither a duration nor a cron line"),
        ("@daily @daily", "there is no time zone '@daily'"),
        ("5 fortnights", "neither a duration nor a cron line"),
        ("30 minutes 1 hour", "neither a duration nor a cron line"),
        ("minutes", "neither a duration nor a cron line"),
    ],
)
def test_anything_else_is_an_error_with_examples(text: str, said: str) -> None:
    with pytest.raises(UserError, match="schedule") as caught:
        parse_schedule(text, "UTC")
    assert caught.value.code == "invalid-option"
    assert said in caught.value.message
    assert caught.value.hint == HINT


def test_the_zone_of_the_project_is_checked_too() -> None:
    with pytest.raises(UserError, match="Mars/Base"):
        parse_schedule("0 0 * * *", "Mars/Base")


FIELD = st.text("0123456789*/-,#LW", min_size=1, max_size=6)


@settings(deadline=None)
@given(st.one_of(st.text(max_size=30), st.lists(FIELD, min_size=5, max_size=7).map(" ".join)))
def test_no_text_breaks_it(text: str) -> None:
    try:
        schedule = parse_schedule(text, "Europe/Berlin")
    except UserError:
        return
    if isinstance(schedule, Every | Cron):
        moment = moment_after(schedule, NOON)
        assert moment is not None and moment > NOON


@settings(deadline=None)
@given(st.integers(1, LONGEST // timedelta(milliseconds=1)))
def test_a_duration_reads_as_it_is_written(milliseconds: int) -> None:
    every = Every(timedelta(milliseconds=milliseconds))
    assert parse_schedule(str(every), "UTC") == every
    assert str(every) == duration(every.period)


def test_schedules_are_shown_as_they_are_written() -> None:
    texts = ("1h30m", "0 6 * * mon-fri Europe/Berlin", "calculated")
    assert tuple(str(parse_schedule(text, "UTC")) for text in texts) == texts


def test_the_nth_turn() -> None:
    assert moment_after(Every(timedelta(hours=1)), NOON, 2) == NOON + timedelta(hours=2)
    daily = Cron("0 6 * * *", "UTC")
    assert moment_after(daily, NOON) == datetime(2026, 5, 2, 6, tzinfo=UTC)
    assert moment_after(daily, NOON, 2) == datetime(2026, 5, 3, 6, tzinfo=UTC)
