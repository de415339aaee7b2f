"""A guard against white space that PostgreSQL's lexer does not take for it.

To PostgreSQL a no-break space (U+00A0) or an ideographic space (U+3000) is a letter: `a b` with one
of them between is one name. sqlglot ends a name there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token

from headrace.errors import UserError

WHITE_SPACE = " \t\n\r\f\v"
"""What separates tokens in PostgreSQL."""

_COMMENT = re.compile(r"--[^\r\n]*|/\*|\*/")


def check_white_space(text: str, tokens: Sequence[Token]) -> None:
    """Refuse other white space between tokens; in strings, quoted names and comments it may be."""
    end = 0
    for token in tokens:
        _check(text, end, token.start)
        end = token.end + 1
    _check(text, end, len(text))


def _check(text: str, start: int, end: int) -> None:
    depth = 0
    position = start
    while position < end:
        comment = _COMMENT.match(text, position, end)
        if comment is not None:
            depth += {"/*": 1, "*/": -1}.get(comment[0], 0)
            # Inside /* … */ two dashes are no comment.
            position = position + 2 if depth else comment.end()
            continue
        character = text[position]
        if not depth and character.isspace() and character not in WHITE_SPACE:
            raise _refusal(text, position)
        position += 1


def _refusal(text: str, position: int) -> UserError:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return UserError(
        "syntax-error",
        f"the character U+{ord(text[position]):04X} does not separate words",
        detail=f"At line {line}, column {column}.",
        hint="Write an ordinary space, or quote the name that it belongs to.",
    )
