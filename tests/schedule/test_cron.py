"""Cron lines across changes of the clocks, compared with a definition minute by minute."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.schedule.cron import Cron

MINUTE = timedelta(minutes=1)
YEAR = datetime(2026, 1, 1, tzinfo=UTC)
LAST = datetime(2027, 1, 1, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
ALL = frozenset(range(60))
# A line, and by itself what it means: minutes, hours, days, months, weekdays from Monday = 1 on.
LINES = {
    "30 2 * * *": ({30}, {2}, ALL, ALL, ALL),
    "0,10,20,30,40,50 1-3 * * *": (set(range(0, 60, 10)), {1, 2, 3}, ALL, ALL, ALL),
    "15 1 * * 7": ({15}, {1}, ALL, ALL, {7}),
    "*/20 2 * * *": ({0, 20, 40}, {2}, ALL, ALL, ALL),
    "*/5 3 * 4,10 *": (set(range(0, 60, 5)), {3}, ALL, {4, 10}, ALL),
    "40 * * * *": ({40}, ALL, ALL, ALL, ALL),
    "0 */6 1 * *": ({0}, {0, 6, 12, 18}, {1}, ALL, ALL),
    "45 1 4,5,25 3-11 *": ({45}, {1}, {4, 5, 25}, set(range(3, 12)), ALL),
}


@cache
def walls(zone: str) -> list[int]:
    """What a clock on the wall shows in every minute of the year, in minutes from its beginning."""
    shown: list[int] = []
    for quarter in range(0, (LAST - YEAR) // MINUTE, 15):
        offset = (YEAR + quarter * MINUTE).astimezone(ZoneInfo(zone)).utcoffset()
        assert offset is not None
        shown += range(quarter + offset // MINUTE, quarter + offset // MINUTE + 15)
    return shown


@cache
def defined(zone: str, line: str) -> list[datetime]:
    """The fires of a year, by looking at every minute of it.

    A line with a star in minute or hour fires whenever the clock shows a time that fits. Any other
    fires when the clock shows, or jumps over, a time that fits and that it has not shown before.
    """
    minutes, hours, days, months, weekdays = LINES[line]
    star = any(field.startswith("*") for field in line.split()[:2])
    times = {60 * hour + minute for hour in hours for minute in minutes}
    dates = set()
    for number in range(-1, (LAST - YEAR).days + 1):
        day = YEAR + timedelta(days=number)
        if day.day in days and day.month in months and day.isoweekday() in weekdays:
            dates.add(number)

    def fits(shown: int) -> bool:
        return shown % 1440 in times and shown // 1440 in dates

    found = []
    highest = walls(zone)[0] - 1
    for number, shown in enumerate(walls(zone)):
        if fits(shown) if star else any(map(fits, range(highest + 1, shown + 1))):
            found.append(YEAR + number * MINUTE)
        highest = max(highest, shown)
    return found


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("zone", ZONES)
def test_a_year_minute_by_minute(zone: str, line: str) -> None:
    cron = Cron(line, zone)
    fires: list[datetime] = []
    moment = cron.fires_after(YEAR - MINUTE / 2)
    while moment is not None and moment < LAST:
        fires.append(moment)
        moment = cron.fires_after(moment)
    assert fires == defined(zone, line)


# Half a day around each change of the clocks in 2026.
CHANGES = {
    "Europe/Berlin": [datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)],
    "America/New_York": [datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)],
    "Australia/Lord_Howe": [
        datetime(2026, 4, 4, 15, tzinfo=UTC),
        datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
    ],
}


@settings(deadline=None)
@given(
    st.sampled_from([(zone, change) for zone in ZONES for change in CHANGES[zone]]),
    st.sampled_from(sorted(LINES)),
    st.timedeltas(timedelta(hours=-6), timedelta(hours=6)),
)
def test_any_moment_near_a_change(where: tuple[str, datetime], line: str, away: timedelta) -> None:
    zone, change = where
    moment = change + away
    found = Cron(line, zone).fires_after(moment)
    later = defined(zone, line)[bisect_right(defined(zone, line), moment) :]
    assert found is not None
    assert found == later[0] if later else found > LAST


def fires(line: str, zone: str, begin: datetime, end: datetime) -> list[str]:
    """The fires between two moments of UTC, as the zone's clocks show them, with their offsets."""
    cron, found = Cron(line, zone), []
    moment = cron.fires_after(begin)
    while moment is not None and moment < end:
        found.append(moment.astimezone(ZoneInfo(zone)).strftime("%d %H:%M %z"))
        moment = cron.fires_after(moment)
    return found


def test_a_skipped_hour() -> None:
    day = (datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 3, 29, 12, tzinfo=UTC))
    assert fires("30 2 * * *", "Europe/Berlin", *day) == ["29 03:00 +0200"]
    assert fires("0,30 2 * * *", "Europe/Berlin", *day) == ["29 03:00 +0200"]
    assert fires("*/30 2 * * *", "Europe/Berlin", *day) == []
    assert fires("30 1-3 * * *", "Europe/Berlin", *day) == [
        "29 01:30 +0100",
        "29 03:00 +0200",
        "29 03:30 +0200",
    ]


def test_a_repeated_hour() -> None:
    day = (datetime(2026, 10, 24, 12, tzinfo=UTC), datetime(2026, 10, 25, 12, tzinfo=UTC))
    assert fires("30 2 * * *", "Europe/Berlin", *day) == ["25 02:30 +0200"]
    assert fires("*/30 2 * * *", "Europe/Berlin", *day) == [
        "25 02:00 +0200",
        "25 02:30 +0200",
        "25 02:00 +0100",
        "25 02:30 +0100",
    ]


def test_in_the_second_of_two_repeated_hours_nothing_fires_in_the_past() -> None:
    second = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)
    assert Cron("30 2 * * *", "Europe/Berlin").fires_after(second) == datetime(
        2026, 10, 26, 1, 30, tzinfo=UTC
    )


def test_half_an_hour_of_lord_howe() -> None:
    zone = "Australia/Lord_Howe"
    back = (datetime(2026, 4, 4, 14, tzinfo=UTC), datetime(2026, 4, 4, 17, tzinfo=UTC))
    assert fires("45 1 * * *", zone, *back) == ["05 01:45 +1100"]
    assert fires("*/15 1 * * *", zone, *back) == [
        "05 01:15 +1100",
        "05 01:30 +1100",
        "05 01:45 +1100",
        "05 01:30 +1030",
        "05 01:45 +1030",
    ]
    assert fires("*/30 3 * * *", zone, *back) == ["05 03:00 +1030"]
    forth = (datetime(2026, 10, 3, 14, tzinfo=UTC), datetime(2026, 10, 3, 17, tzinfo=UTC))
    assert fires("15 2 * * *", zone, *forth) == ["04 02:30 +1100"]
    assert fires("*/30 3 * * *", zone, *forth) == ["04 03:00 +1100", "04 03:30 +1100"]


def test_the_zone_of_a_moment_makes_no_difference() -> None:
    moment = datetime(2026, 7, 1, 3, 59, tzinfo=UTC)
    cron = Cron("0 6 * * *", "Europe/Berlin")
    assert cron.fires_after(moment) == datetime(2026, 7, 1, 4, tzinfo=UTC)
    assert cron.fires_after(moment.astimezone(ZoneInfo("Asia/Tokyo"))) == cron.fires_after(moment)


def test_a_line_that_comes_to_its_end() -> None:
    line = Cron("0 0 29 2 mon#5", "UTC")
    assert line.fires_after(YEAR) is not None
    assert Cron("* * */20 * 1L", "UTC").fires_after(YEAR) is None


SECONDS = ("0", "7", "*/20", "5,59")


@settings(deadline=None)
@example("Europe/Berlin", "*/5 3 * 4,10 *", "0", 436495, 0)
@given(
    st.sampled_from(ZONES),
    st.sampled_from(sorted(LINES)),
    st.sampled_from(SECONDS),
    st.integers(0, (LAST - YEAR) // MINUTE - 60 * 24 * 40),
    st.integers(0, 59),
)
def test_seconds_are_those_of_a_line_without_them(
    zone: str, line: str, seconds: str, minute: int, second: int
) -> None:
    """Each fire has all of the seconds, and one at the end of a skipped hour has none."""
    moment = YEAR + timedelta(minutes=minute, seconds=second)
    within = {"0": [0], "7": [7], "*/20": [0, 20, 40], "5,59": [5, 59]}[seconds]
    before = bisect_right(defined(zone, line), moment - MINUTE)
    expected = []
    for fire in defined(zone, line)[before : before + 4]:
        wall = fire.astimezone(ZoneInfo(zone))
        made_up = wall.minute not in LINES[line][0] or wall.hour not in LINES[line][1]
        expected += [fire + timedelta(seconds=s) for s in ([0] if made_up else within)]
    found = Cron(f"{seconds} {line}", zone).fires_after(moment)
    later = [one for one in expected if one > moment]
    if later:
        assert found == min(later)
    else:
        assert found is None or found > LAST, "beyond what is defined here"
