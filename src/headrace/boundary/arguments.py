"""Arguments of callers, checked before anything else sees them: text and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from zoneinfo import ZoneInfo

from headrace.errors import UserError

# PostgreSQL's bigint; counts and epochs are kept in it.
LARGEST_COUNT = 2**63 - 1
# A hundred years, as for schedules: times plus or minus so many seconds can still be written.
LONGEST_SECONDS = 36_525 * 86_400.0


def check_text(*given: object) -> None:
    """Raise `invalid-text` for text, also inside lists and mappings, that is no Unicode text.

    That is NUL, which PostgreSQL cannot store, and lone surrogates, as Python makes them of bytes
    on the command line that are not UTF-8. A path may have the latter.
    """
    for value in given:
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
    """Return the value if it is a number of seconds up to a hundred years."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # NaN is not between anything.
    if number and 0 <= value <= LONGEST_SECONDS:
        return float(value)
    raise UserError(
        "invalid-option", f"{name} must be a number of seconds from 0 to {LONGEST_SECONDS:.0f}"
    )


def is_zone(name: str) -> bool:
    """Whether there is a time zone of this name."""
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
                f"text has {kind}, U+{ord(character):04X}, after {place} characters",
                hint="Text is UTF-8 without NUL characters.",
            )
