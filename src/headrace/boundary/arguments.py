"""Checks of the arguments of callers: text and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from zoneinfo import ZoneInfo

from headrace.errors import UserError

# PostgreSQL's largest bigint, the type of counts and epochs.
LARGEST_COUNT = 2**63 - 1
# A hundred years, as for schedules: adding so many seconds to a time cannot overflow.
LONGEST_SECONDS = 36_525 * 86_400.0


def check_text(*values: object) -> None:
    """Raise `invalid-text` for text, also inside lists and mappings, that PostgreSQL cannot store.

    NUL characters cannot be stored, nor lone surrogates, which Python makes of bytes on the command
    line that are not UTF-8. A path may have the latter.
    """
    for value in values:
        match value:
            case str():
                _check(value, surrogates=False)
            case PurePath():
                _check(str(value), surrogates=True)
            case Mapping():
                check_text(*value.keys(), *value.values())
            case list() | tuple():
                check_text(*value)


def whole_number(name: str, value: Any, least: int = 1, most: int = LARGEST_COUNT) -> int:
    """Return the value if it is a whole number between the two, else raise `invalid-option`."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise UserError("invalid-option", f"{name} must be a whole number from {least} to {most}")


def seconds(name: str, value: Any) -> float:
    """Return the value if it is a number of seconds up to a hundred years, else raise."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # NaN fails every comparison.
    if number and 0 <= value <= LONGEST_SECONDS:
        return float(value)
    raise UserError(
        "invalid-option", f"{name} must be a number of seconds from 0 to {LONGEST_SECONDS:.0f}"
    )


def is_zone(name: str) -> bool:
    """Return whether there is a time zone of this name."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return False
    return True


def _check(text: str, *, surrogates: bool) -> None:
    for place, character in enumerate(text):
        lone = not surrogates and 0xD800 <= ord(character) <= 0xDFFF
        if character == "\0" or lone:
            kind = "a NUL character" if character == "\0" else "a lone surrogate"
            raise UserError(
                "invalid-text",
                f"text contains {kind}, U+{ord(character):04X}, after {place} characters",
                hint="Text must be UTF-8 without NUL characters.",
            )
