"""Text: concatenation, length, LIKE with a constant pattern, and the type of a text result."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar, Value
from headrace.functions.function import Function, spark_function
from headrace.types import BOOLEAN, INTEGER, TEXT, Type


def all_text(arguments: Sequence[Scalar]) -> bool:
    return all(argument.type.is_text for argument in arguments)


def text_of(arguments: Sequence[Scalar]) -> Type:
    """Return the type text with the collation that text arguments agree on; a constant's yields."""
    texts = [argument for argument in arguments if argument.type.is_text]
    deciding = [text for text in texts if not isinstance(text, Literal)] or texts
    return Type(
        TEXT.kind,
        ordered=all(text.type.ordered for text in deciding),
        folds=all(text.type.folds for text in deciding),
    )


def _concatenation_type(arguments: Sequence[Scalar]) -> Type | None:
    if all(argument.type.kind == "bytea" for argument in arguments):
        return Type("bytea")
    if not all_text(arguments):
        return None
    return Type(
        TEXT.kind,
        ordered=all(argument.type.ordered for argument in arguments),
        folds=text_of(arguments).folds,
    )


TEXTS: tuple[Function, ...] = (
    Function(
        "||",
        _concatenation_type,
        lambda a, *_: spark_function("concat", *a),
        lambda left, right: left + right,
        "a || b",
        note="One side may be of any type that can be cast to text.",
    ),
    # A bpchar whose values have blanks of their own, as LIKE and concat see it.
    Function(
        "with blanks",
        lambda a: text_of(a) if a[0].type.keeps_blanks else None,
        lambda a, *_: a[0],
        lambda text: text,
        "",
    ),
    Function(
        "length",
        lambda arguments: INTEGER if all_text(arguments) else None,
        lambda a, *_: spark_function("length", *a),
        len,
        "length(a), char_length(a), character_length(a)",
    ),
)


def _like_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return BOOLEAN if the pattern is a constant that does not end in an escape.

    Of char(n) the blanks would be needed.
    """
    text, pattern = arguments
    if not all_text(arguments) or text.type.kind == "character":
        return None
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    return None if _translate(pattern.value) is None else BOOLEAN


def escaped_by(pattern: str, escape: str) -> str | None:
    """Return the pattern of LIKE … ESCAPE with a backslash as its escape.

    Return None if it ends in one.
    """
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
    """Return a LIKE pattern as a regular expression, or None if it ends in a lone escape."""
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
    """Return RLIKE with every character quoted that has a meaning in Java's regular expressions."""
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
    """Return a character as a regular expression that matches it alone."""
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
