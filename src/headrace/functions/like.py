"""LIKE with a constant pattern: `%` is any text, `_` any character, a backslash quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar, Value
from headrace.functions.function import Function, spark_function
from headrace.functions.text import all_text
from headrace.types import BOOLEAN, Type


def _like_type(arguments: Sequence[Scalar]) -> Type | None:
    """The pattern is a constant that does not end in an escape; char(n) would need its blanks."""
    text, pattern = arguments
    if not all_text(arguments) or text.type.kind == "character":
        return None
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    return None if _translate(pattern.value) is None else BOOLEAN


def escaped_by(pattern: str, escape: str) -> str | None:
    """The pattern of LIKE … ESCAPE with a backslash as its escape; None if it ends in one."""
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            quoted = next(characters, None)
            if quoted is None:
                return None
            parts.append("\\" + quoted)
        else:
            parts.append("\\\\" if character == "\\" else character)
    return "".join(parts)


def _translate(pattern: str) -> str | None:
    """A LIKE pattern as a regular expression, or None if it ends in a lone escape."""
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                return None
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    return "".join(parts)


def _like(text: Value, pattern: Value) -> Value:
    assert isinstance(text, str) and isinstance(pattern, str)
    translated = _translate(pattern)
    assert translated is not None
    return re.fullmatch(translated, text, re.DOTALL) is not None


def _like_spark(arguments: Sequence[exp.Expression], *_: object) -> exp.Expression:
    """As RLIKE with every letter that means something in Java's regular expressions quoted."""
    text, pattern = arguments
    assert isinstance(pattern, exp.Literal)
    translated = _java(pattern.name)
    return spark_function("rlike", text, exp.Literal.string(translated))


def _java(pattern: str) -> str:
    parts, characters = [], iter(pattern)
    for character in characters:
        if character in "%_":
            parts.append({"%": ".*", "_": "."}[character])
        else:
            parts.append(quoted(next(characters) if character == "\\" else character))
    return "(?s)\\A" + "".join(parts) + "\\z"


def quoted(character: str) -> str:
    """A character as a regular expression that matches it alone."""
    means_itself = character.isalnum() or not character.isascii() or character.isspace()
    return character if means_itself else "\\" + character


LIKES: tuple[Function, ...] = (
    Function(
        "like",
        _like_type,
        _like_spark,
        _like,
        "a [NOT] LIKE 'pattern', a [NOT] LIKE 'pattern' ESCAPE 'e', a [NOT] ILIKE 'pattern'",
        note="The pattern is a constant. A char(n) is matched with its blanks, as in PostgreSQL."
        " ILIKE needs collation C.",
    ),
)
