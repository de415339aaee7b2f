"""How a served table is partitioned: by the values of a column, or by ranges of them. Pure.

region              one partition a value
month(ordered)      one a day, week, month or year of a date or timestamp
range(id, 100000)   one for so many integers
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

OPTION = "partition_by"
AHEAD = "partition_ahead"
DROP_EMPTY = "partition_drop_empty"
SOURCE = "source"
UNITS = ("day", "week", "month", "year")

_UNIT = re.compile(rf"({'|'.join(UNITS)})\s*\((.+)\)", re.IGNORECASE | re.DOTALL)
# All values of bigint are a range of 20 digits.
_WIDTH = re.compile(r"range\s*\((.+),\s*([0-9]{1,20})\s*\)", re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"]|"")+"')
_TAKEN_OVER = re.compile(rf"{SOURCE}\s*\((.+)\)", re.IGNORECASE | re.DOTALL)
_FORMS = (_UNIT, _WIDTH, _QUOTED, _TAKEN_OVER)


@dataclass(frozen=True)
class Scheme:
    """The column, and the `unit` of time or the `width` of integers that a range of it has.

    It may have been `taken_over` from what the query reads.
    """

    column: str
    unit: str | None = None
    width: int | None = None
    taken_over: bool = False

    @property
    def is_range(self) -> bool:
        return self.unit is not None or self.width is not None

    def __str__(self) -> str:
        text = self._text()
        return f"{SOURCE}({text})" if self.taken_over else text

    def _text(self) -> str:
        quoted = '"' + self.column.replace('"', '""') + '"'
        if not self.is_range:
            looks_otherwise = any(p.fullmatch(self.column) for p in _FORMS)
            return quoted if looks_otherwise else self.column
        name = quoted if _QUOTED.fullmatch(self.column) else self.column
        return f"{self.unit}({name})" if self.unit is not None else f"range({name}, {self.width})"


def parse_scheme(text: str) -> Scheme | None:
    """Return the scheme that a text names, None for a width of 0. Other texts name columns."""
    match = _TAKEN_OVER.fullmatch(text.strip())
    if match is not None:
        inside = parse_scheme(match[1])
        return None if inside is None else replace(inside, taken_over=True)
    match = _UNIT.fullmatch(text.strip())
    if match is not None:
        return Scheme(_name(match[2]), unit=match[1].lower())
    match = _WIDTH.fullmatch(text.strip())
    if match is not None:
        width = int(match[2])
        return Scheme(_name(match[1]), width=width) if width else None
    return Scheme(_name(text)) if text else None


def _name(text: str) -> str:
    """Return a column's name, which is written as it is shown or in double quotes."""
    if _QUOTED.fullmatch(text.strip()):
        return text.strip()[1:-1].replace('""', '"')
    return text


def as_scheme(text: Any) -> str | None:
    """Return a scheme as an option keeps it, None if the value names none."""
    scheme = parse_scheme(text) if isinstance(text, str) else None
    return None if scheme is None else str(scheme)


def scheme_of(options: Mapping[str, Any]) -> Scheme | None:
    """Return the scheme that options request."""
    text = options.get(OPTION)
    return None if text is None else parse_scheme(text)
