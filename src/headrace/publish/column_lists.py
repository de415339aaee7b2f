"""Lists of columns as options of stream tables keep them: text, in which every name can be told."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(r'\s*("(?:[^"]|"")+"|[^",]*[^",\s])\s*(?:,|$)')


def listed(text: str | None) -> tuple[str, ...]:
    """The names in the text of an option, as `as_list` writes it."""
    names = _parsed(text or "")
    assert names is not None
    return names


def as_list(given: Any) -> str | None:
    """Names of columns as an option keeps them: separated by commas, in quotes where needed.

    They are given so, or as a list. None if they are not names, or one of them comes twice.
    """
    names = _parsed(given) if isinstance(given, str) else _strings(given)
    if not names or len(set(names)) < len(names):
        return None
    return ", ".join(map(quoted, names))


def _strings(given: Any) -> tuple[str, ...] | None:
    if not isinstance(given, list | tuple) or not all(
        isinstance(one, str) and one for one in given
    ):
        return None
    return tuple(given)


def _parsed(text: str) -> tuple[str, ...] | None:
    """The names; unquoted ones are just what is written."""
    names, place = [], 0
    while place < len(text):
        found = _NAME.match(text, place)
        if found is None:
            return None
        name = found[1]
        names.append(name[1:-1].replace('""', '"') if name.startswith('"') else name)
        place = found.end()
        if place == len(text) and text.endswith(","):
            return None
    return tuple(names)


def quoted(name: str) -> str:
    """A name as it is written in a list."""
    plain = name == name.strip() and not any(mark in name for mark in '",')
    return name if plain else '"' + name.replace('"', '""') + '"'
