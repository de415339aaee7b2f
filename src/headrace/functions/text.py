"""Text: concatenation, length and LIKE."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from headrace.functions.function import Function, spark_function
from headrace.plan.scalar import Literal, Scalar, Value
from headrace.types import BOOLEAN, INTEGER, TEXT, Type


def _all_text(arguments: Sequence[Scalar]) -> bool:
    return all(argument.type.is_text for argument in arguments)


def _concatenation_type(arguments: Sequence[Scalar]) -> Type | None:
    if not _all_text(arguments):
        return None
    return Type(TEXT.kind, ordered=all(argument.type.ordered for argument in arguments))


def _like_type(arguments: Sequence[Scalar]) -> Type | None:
    """The pattern is a constant that does not end in an escape; char(n) would need its blanks."""
    text, pattern = arguments
    if not _all_text(arguments) or text.type.kind == "character":
        return None
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    return None if _translate(pattern.value) is None else BOOLEAN


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
            parts.append(_quoted(next(characters) if character == "\\" else character))
    return "(?s)\\A" + "".join(parts) + "\\z"


def _quoted(character: str) -> str:
    means_itself = character.isalnum() or not character.isascii()
    return character if means_itself else "\\" + character


TEXTS: tuple[Function, ...] = (
    Function(
        "||",
        _concatenation_type,
        lambda a, *_: spark_function("concat", *a),
        lambda left, right: left + right,
        "a || b",
        note="One side may be of any type that can be cast to text.",
    ),
    Function(
        "length",
        lambda arguments: INTEGER if _all_text(arguments) else None,
        lambda a, *_: spark_function("length", *a),
        len,
        "length(a), char_length(a), character_length(a)",
    ),
    Function(
        "like",
        _like_type,
        _like_spark,
        _like,
        "a [NOT] LIKE 'pattern'",
        note="The pattern is a constant; char(n) must be cast to text.",
    ),
)
