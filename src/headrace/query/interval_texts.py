"""Constants of type interval, in the forms that mean the same under every setting."""

from __future__ import annotations

import re

from headrace.functions.intervals import HOUR, MINUTE, SECOND, Parts, checked, parts_of

_MONTHS = {"month": 1, "mon": 1, "year": 12, "yr": 12, "decade": 120, "century": 1200}
_DAYS = {"day": 1, "week": 7}
_MICROS = {
    "hour": HOUR,
    "hr": HOUR,
    "minute": MINUTE,
    "min": MINUTE,
    "second": SECOND,
    "sec": SECOND,
    "millisecond": 1000,
    "microsecond": 1,
}
_PART = re.compile(r"\s*([+-]?[0-9]+)(?:\.([0-9]{1,6}))?\s*([a-z]+)")
_CLOCK = re.compile(r"\s*([+-]?)([0-9]+):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?\s*$")


def read_interval(text: str, unit: str | None = None) -> str:
    """The canonical text of `interval 'text' unit`; ValueError if it is in another form."""
    text = text.strip().lower()
    if unit is not None and re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text):
        text = f"{text} {unit.lower()}"
    elif unit is not None:
        raise ValueError(text)
    if text.startswith("p"):
        return _iso(text.upper())
    months = days = micros = at = 0
    while found := _PART.match(text, at):
        whole, fraction, name = found.groups()
        name = name.removesuffix("s") if name not in ("centuries",) else "century"
        count, at = int(whole), found.end()
        if fraction and name not in ("second", "sec"):
            raise ValueError(text)
        if name in _MONTHS:
            months += count * _MONTHS[name]
        elif name in _DAYS:
            days += count * _DAYS[name]
        elif name in _MICROS:
            micros += count * _MICROS[name] + _signed(whole, fraction)
        else:
            raise ValueError(text)
    if at < len(text):
        micros += _clock(text[at:])
    elif at == 0:
        raise ValueError(text)
    return checked(months, days, micros)


def _signed(whole: str, fraction: str | None) -> int:
    micros = int((fraction or "").ljust(6, "0"))
    return -micros if whole.startswith("-") else micros


def _clock(text: str) -> int:
    found = _CLOCK.match(text)
    if found is None:
        raise ValueError(text)
    sign, hours, minutes, seconds, fraction = found.groups()
    if int(minutes) > 59 or int(seconds or 0) > 59:
        raise ValueError(text)
    micros = int(hours) * HOUR + int(minutes) * MINUTE + int(seconds or 0) * SECOND
    micros += int((fraction or "").ljust(6, "0"))
    return -micros if sign == "-" else micros


def _iso(text: str) -> str:
    """ISO 8601, as views print their constants; weeks are seven days."""
    weeks = re.fullmatch(r"P(-?[0-9]+)W", text)
    if weeks:
        return Parts(0, int(weeks[1]) * 7, 0).text
    if text in ("P", "PT") or text.endswith("T"):
        raise ValueError(text)
    parts = parts_of(text)
    return checked(parts.months, parts.days, parts.micros)
