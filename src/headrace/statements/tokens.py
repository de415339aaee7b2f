"""Text to tokens, by the rules of PostgreSQL's scanner: enough to find where a statement ends.

The inside of a query is not parsed here, only skipped: strings with and without escapes,
quoted names, dollar quotes, and comments, which nest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from headrace.errors import UserError
from headrace.statements.statement import TextPosition

Kind = Literal["word", "name", "string", "symbol"]

_SPACE = re.compile(r"(?:[ \t\n\r\f\v]+|--[^\r\n]*)+")
_COMMENT = re.compile(r"/\*|\*/")
_DOLLAR = re.compile(r"\$(?:[^\W\d]\w*)?\$")
_WORD = re.compile(r"[^\W\d][\w$]*")
_NUMBER = re.compile(r"\d[\w.]*")
_PLAIN = re.compile(r"'(?:[^']|'')*'")
_ESCAPED = re.compile(r"[eE]'(?:[^'\\]|''|\\.)*'", re.DOTALL)
_PREFIXED = re.compile(r"(?:[bBxXnN]|[uU]&)'(?:[^']|'')*'")
_NAME = re.compile(r'(?:[uU]&)?"(?:[^"]|"")*"')


@dataclass(frozen=True)
class Token:
    """A piece of text that is not space or comment."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def place_of(text: str, position: int) -> TextPosition:
    """Return line and column of a position."""
    before = text[:position]
    return TextPosition(before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)


def tokens(text: str) -> Iterator[Token]:
    """Yield all tokens; raise `syntax-error` if a string, quoted name or comment does not end."""
    position = 0
    while (position := _skip(text, position)) < len(text):
        token = _token(text, position)
        yield token
        position = token.end


def _skip(text: str, position: int) -> int:
    """Return the position after spaces and comments."""
    while True:
        space = _SPACE.match(text, position)
        if space is not None:
            position = space.end()
        elif text.startswith("/*", position):
            position = _past_comment(text, position)
        else:
            return position


def _past_comment(text: str, start: int) -> int:
    depth = 0
    for mark in _COMMENT.finditer(text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    raise _unfinished(text, start, "comment")


def _token(text: str, start: int) -> Token:
    dollar = _DOLLAR.match(text, start)
    if dollar is not None:
        end = text.find(dollar.group(), dollar.end())
        if end < 0:
            raise _unfinished(text, start, "dollar-quoted string")
        return Token("string", text[start : end + len(dollar.group())], start)
    kinds: tuple[tuple[Kind, re.Pattern[str]], ...] = (
        ("string", _ESCAPED),
        ("string", _PREFIXED),
        ("string", _PLAIN),
        ("name", _NAME),
        ("word", _WORD),
        ("word", _NUMBER),
    )
    for kind, pattern in kinds:
        match = pattern.match(text, start)
        if match is not None:
            if _begins_quote(text, match):
                break
            return Token(kind, match.group(), start)
    if text[start] in "'\"" or text[start : start + 2].lower() in ("e'",):
        raise _unfinished(text, start, "quoted name" if text[start] == '"' else "string")
    return Token("symbol", text[start], start)


def _begins_quote(text: str, match: re.Match[str]) -> bool:
    """Return whether what looks like a word is the beginning of an escape string without an end."""
    return match.group() in ("e", "E") and text.startswith("'", match.end())


def _unfinished(text: str, start: int, what: str) -> UserError:
    return UserError(
        "syntax-error",
        f"unterminated {what}",
        detail=f"The {what} begins at {place_of(text, start)}.",
    )
