"""Constants of arrays, as PostgreSQL writes them: '{1, 2, NULL}'."""

from __future__ import annotations

import re

_BLANK = r"[ \t\n\r\v\f]*"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PLAIN = r'[^"\\{},\s](?:[^"\\{},]*[^"\\{},\s])?'
_ELEMENT = re.compile(rf"{_BLANK}({_QUOTED}|{_PLAIN}){_BLANK}(,|$)", re.DOTALL)


def read_array(text: str) -> tuple[str | None, ...]:
    """The texts of the elements, None for NULL; ValueError if it is not a list of one dimension."""
    text = text.strip(" \t\n\r\v\f")
    if len(text) < 2 or text[0] != "{" or text[-1] != "}":
        raise ValueError(text)
    inside, place = text[1:-1], 0
    if not inside.strip():
        return ()
    elements: list[str | None] = []
    while True:
        found = _ELEMENT.match(inside, place)
        if found is None:
            raise ValueError(text)
        elements.append(_element(found[1]))
        if not found[2]:
            return tuple(elements)
        place = found.end()


def _element(text: str) -> str | None:
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
    return None if text.upper() == "NULL" else text
