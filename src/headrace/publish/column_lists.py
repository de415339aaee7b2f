"""Lists of columns as options of stream tables keep them: text from which names can be parsed."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(r'\s*("(?:[^"]|"")+"|[^",]*[^",\s])\s*(?:,|$)')


def listed(text: str | None) -> tuple[str, ...]:
    """Return the names in the text of an option, as `as_list` writes it."""
    names = _parsed(text or "")
    assert names is not None
    return names


def as_list(names: Any) -> str | None:
    """Return names of columns as an option keeps them: with commas, in quotes where needed.

    `names` is such a text, or a list. None if a name is no text, empty or named twice.
    """
    parsed = _parsed(names) if isinstance(names, str) else _strings(names)
    if not parsed or len(set(parsed)) < len(parsed):
        return None
    return ", ".join(map(quoted, parsed))


def _strings(names: Any) -> tuple[str, ...] | None:
    if not isinstance(names, list | tuple):
        return None
    return tuple(names) if all(isinstance(name, str) and name for name in names) else None


def _parsed(text: str) -> tuple[str, ...] | None:
    """Return the names of a text; without quotes a name is taken as it is written."""
    names, position = [], 0
    while position < len(text):
        match = _NAME.match(text, position)
        if match is None:
            return None
        name = match[1]
        names.append(name[1:-1].replace('""', '"') if name.startswith('"') else name)
        position = match.end()
        if position == len(text) and text.endswith(","):
            return None
    return tuple(names)


def quoted(name: str) -> str:
    """Return a name as a list has it."""
    plain = name == name.strip() and not any(mark in name for mark in '",')
    return name if plain else '"' + name.replace('"', '""') + '"'
