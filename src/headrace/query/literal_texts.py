"""Read the texts of array and interval constants."""

from __future__ import annotations

import re

from headrace.functions.intervals import HOUR, MINUTE, SECOND, IntervalParts, checked, parts_of

_BLANK = r"[ \t\n\r\v\f]*"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PLAIN = r'[^"\\{},\s](?:[^"\\{},]*[^"\\{},\s])?'
_ELEMENT = re.compile(rf"{_BLANK}({_QUOTED}|{_PLAIN}){_BLANK}(,|$)", re.DOTALL)


def read_array(text: str) -> tuple[str | None, ...]:
    """Return the texts of the elements, None for NULL.

    Raise ValueError if it is not a list of one dimension.
    """
    text = text.strip(" \t\n\r\v\f")
    if len(text) < 2 or text[0] != "{" or text[-1] != "}":
        raise ValueError(text)
    inside, place = text[1:-1], 0
    if not inside.strip():
        return ()
    elements: list[str | None] = []
    while True:
        element_match = _ELEMENT.match(inside, place)
        if element_match is None:
            raise ValueError(text)
        elements.append(_element(element_match[1]))
        if not element_match[2]:
            return tuple(elements)
        place = element_match.end()


def _element(text: str) -> str | None:
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
    return None if text.upper() == "NULL" else text


_MONTHS = {"month": 1, "mon": 1, "year": 12, "yr": 12, "decade": 120}
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
# A unit in months, days and microseconds.
_UNITS = {
    **{name: (months, 0, 0) for name, months in _MONTHS.items()},
    **{name: (0, days, 0) for name, days in _DAYS.items()},
    **{name: (0, 0, micros) for name, micros in _MICROS.items()},
}
_UNITS |= {f"{name}s": parts for name, parts in _UNITS.items()}
_UNITS |= dict.fromkeys(("century", "centuries"), (1200, 0, 0))
_SECONDS = ("second", "seconds", "sec", "secs")
_BLANKS = " \t\n\r\f\v"
_PART = re.compile(r"([+-]?[0-9]+)(?:\.([0-9]{1,6}))?\s*([a-z]+)(?:\s+|$)")
_CLOCK = re.compile(r"([+-]?)([0-9]+):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?$")


def read_interval(text: str, unit: str | None = None) -> str:
    """Return the canonical text of `interval 'text' unit`; ValueError if it is in another form."""
    if not text.isascii():
        raise ValueError(text)
    if text.startswith("P") and unit is None:
        return _iso(text)
    text = text.strip(_BLANKS).lower()
    if unit is not None and re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text):
        text = f"{text} {unit.lower()}"
    elif unit is not None:
        raise ValueError(text)
    forward = re.sub(r"\s+ago$", "", text)
    months, days, micros = _parts(forward)
    if forward != text:
        months, days, micros = -months, -days, -micros
    return checked(months, days, micros)


def _parts(text: str) -> tuple[int, int, int]:
    """Return months, days and microseconds of numbers with units, and a time of day at the end."""
    total, used_fields, at, signs = (0, 0, 0), set[tuple[int, int, int]](), 0, ""
    while part_match := _PART.match(text, at):
        whole, fraction, name = part_match.groups()
        unit = _UNITS.get(name)
        if unit is None or (fraction and name not in _SECONDS):
            raise ValueError(text)
        # Fractions of a second are one field with it, and no field is given twice.
        field = (0, 0, SECOND) if 0 < unit[2] < SECOND else unit
        if field in used_fields:
            raise ValueError(text)
        used_fields.add(field)
        months, days, micros = (
            sum_ + int(whole) * part for sum_, part in zip(total, unit, strict=True)
        )
        total, at = (months, days, micros + _signed(whole, fraction)), part_match.end()
        signs += _sign(whole)
    if at < len(text):
        if any(micros for _, _, micros in used_fields):
            raise ValueError(text)
        total = (*total[:2], total[2] + _clock(text[at:]))
        signs += _sign(text[at:])
    # Under IntervalStyle = sql_standard a single minus in front is that of all fields.
    if not signs or re.fullmatch(r"-\.+", signs):
        raise ValueError(text)
    return total


def _sign(number: str) -> str:
    """Return the sign that is written, or a dot for none."""
    return number[0] if number[0] in "+-" else "."


def _signed(whole: str, fraction: str | None) -> int:
    micros = int((fraction or "").ljust(6, "0"))
    return -micros if whole.startswith("-") else micros


def _clock(text: str) -> int:
    clock_match = _CLOCK.match(text)
    if clock_match is None:
        raise ValueError(text)
    sign, hours, minutes, seconds, fraction = clock_match.groups()
    if int(minutes) > 59 or int(seconds or 0) > 59:
        raise ValueError(text)
    micros = int(hours) * HOUR + int(minutes) * MINUTE + int(seconds or 0) * SECOND
    micros += int((fraction or "").ljust(6, "0"))
    return -micros if sign == "-" else micros


def _iso(text: str) -> str:
    """Return the text of an ISO 8601 interval, as views print constants; weeks are seven days."""
    weeks = re.fullmatch(r"P(-?[0-9]+)W", text)
    if weeks:
        return IntervalParts(0, int(weeks[1]) * 7, 0).text
    if text in ("P", "PT") or text.endswith("T") or re.search(r"\.[0-9]{7}", text):
        raise ValueError(text)
    parts = parts_of(text)
    return checked(parts.months, parts.days, parts.micros)
