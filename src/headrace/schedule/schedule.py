"""Schedules, parsed from a user's text. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from headrace.boundary.arguments import is_zone
from headrace.errors import UserError
from headrace.schedule.cron import Cron, complaint

UNITS = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
SPELLINGS = {
    "w": "w|weeks?",
    "d": "d|days?",
    "h": "h|hours?",
    "m": "m|mins?|minutes?",
    "s": "s|secs?|seconds?",
    "ms": "ms|milliseconds?",
}
LINES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""Cron lines that have names."""
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
LONGEST = timedelta(days=36_525)
CALCULATED = "calculated"
HINT = (
    "A schedule is a duration (30s, 1h30m, 5 minutes, 2w), a cron line of five fields, or of six"
    " with seconds before them, with or without a time zone (*/5 * * * *, 0 6 * * mon-fri"
    " Europe/Berlin), a name for one (@hourly, @daily), or calculated; none at all is manual."
)

_DURATION = re.compile(
    " ?".join(rf"(?:(?P<{unit}>[0-9]{{1,15}}) ?(?:{SPELLINGS[unit]}))?" for unit in UNITS)
)


@dataclass(frozen=True)
class Every:
    """A period of real time, longer than zero."""

    period: timedelta

    def __str__(self) -> str:
        return duration(self.period)


@dataclass(frozen=True)
class Calculated:
    """A schedule taken from those of the tables that read the table."""

    def __str__(self) -> str:
        return CALCULATED


Timed: TypeAlias = Every | Cron
Schedule: TypeAlias = Timed | Calculated


def parse_schedule(text: str | None, zone: str) -> Schedule | None:
    """Return the schedule in a text, None for manual; `zone` is for cron lines that name none."""
    words = (text or "").split()
    if not words:
        return None
    text = " ".join(words).lower()
    if text == CALCULATED:
        return Calculated()
    if duration_match := _DURATION.fullmatch(text):
        return Every(_period(duration_match))
    words = [*LINES.get(words[0].lower(), words[0]).split(), *words[1:]]
    if 5 <= len(words) <= 7:
        return _cron(words, zone)
    raise _invalid(text, "neither a duration nor a cron line")


def moment_after(schedule: Timed, last: datetime, turns: int = 1) -> datetime | None:
    """Return when a schedule comes round for the nth time after a moment; None for never."""
    if isinstance(schedule, Every):
        return last + schedule.period * turns
    moment: datetime | None = last
    for _ in range(turns):
        moment = moment and schedule.fires_after(moment)
    return moment


def duration(period: timedelta) -> str:
    """Return a period as it is written in a schedule, in days and smaller units."""
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, period = divmod(period, UNITS[unit])
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts)


def _period(found: re.Match[str]) -> timedelta:
    counts = found.groupdict("0").items()
    try:
        period = sum((int(count) * UNITS[unit] for unit, count in counts), timedelta())
    except OverflowError:
        period = timedelta.max
    if not timedelta() < period <= LONGEST:
        wrong = f"a duration is longer than nothing and at most {LONGEST.days} days"
        raise _invalid(found.string, wrong)
    return period


def _cron(words: list[str], zone: str) -> Cron:
    """Return the cron line in five or six fields; a word behind them names the zone."""
    seconds = len(words) == 7 or (len(words) == 6 and _says_weekdays(words[-1]))
    fields = " ".join(words[: 5 + seconds])
    if (wrong := complaint(fields)) is not None:
        raise _invalid(" ".join(words), wrong)
    named = words[-1] if len(words) > 5 + seconds else zone
    if not is_zone(named):
        raise _invalid(" ".join(words), f"there is no time zone {named!r}")
    return Cron(fields, named)


def _says_weekdays(word: str) -> bool:
    """Return whether a word is the last field of a cron line, rather than a zone behind it.

    Signs of other fields or of other cron dialects count as a field, too, and not as a zone.
    """
    return (
        word[0] in "0123456789*" or word[:3].lower() in WEEKDAYS or word.upper() in ("L", "LW", "?")
    )


def _invalid(text: str, wrong: str) -> UserError:
    return UserError("invalid-option", f"schedule {text!r}: {wrong}", hint=HINT)
