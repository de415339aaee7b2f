"""A guard against reading an operator's name otherwise than PostgreSQL's lexer does.

PostgreSQL takes the longest run of operator characters for one name: `a&-1` calls the operator
`&-`, which a user may have created. sqlglot reads the operators that it knows out of the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from headrace.errors import UserError

_CHARACTERS = frozenset("+-*/<>=~!@#%^&|`?")
# A name of several characters ends in + or - only if one of these stands before.
_BEFORE_SIGN = frozenset("~!@#%^&|`?")
_COMMENTS = ("--", "/*")
_UNICODE_NAME = (TokenType.VAR, TokenType.AMP, TokenType.IDENTIFIER)
# Built-in operators, each as the tokens that sqlglot makes of it; => stands before an argument.
_TOKENS: dict[str, tuple[str, ...]] = {
    **{
        name: (name,)
        for name in (
            *("+", "-", "*", "/", "%", "^", "=", "<>", "!=", "<", ">", "<=", ">=", "=>", "||"),
            *("&", "|", "#", "~", "~*", "~~", "~~*", "^@", "|/", "@>", "<@", "&&"),
            *("->", "->>", "#>", "#>>", "?"),
        )
    },
    "!~": ("!", "~"),
    "!~*": ("!", "~*"),
    "!~~": ("!", "~~"),
    "!~~*": ("!", "~~*"),
    "<<": ("<", "<"),
    ">>": (">", ">"),
}


def check_operator_names(text: str, tokens: Sequence[Token]) -> None:
    """Refuse an operator that is none of the built-in ones that can be maintained."""
    waiting = deque(tokens)
    while waiting:
        first = waiting.popleft()
        if text[first.start] not in _CHARACTERS:
            continue
        waiting.appendleft(first)
        for name in operator_names(text, first.start):
            parts = _TOKENS.get(name, (name,))
            read = tuple(waiting.popleft().text for _ in parts if waiting)
            if name not in _TOKENS or read != parts:
                raise UserError(
                    "unsupported-function",
                    f"operator {name} is not maintained",
                    detail=_place(first),
                    hint="Operator characters without a space between them are one operator."
                    " See docs/sql.md for those that are maintained.",
                )


def check_unicode_names(tokens: Sequence[Token]) -> None:
    """Refuse `u&"…"`, which sqlglot takes for an operator between two columns."""
    for prefix, operator, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        kinds = (prefix.token_type, operator.token_type, name.token_type)
        adjacent = prefix.end + 1 == operator.start == name.start - 1
        if kinds == _UNICODE_NAME and prefix.text in ("u", "U") and adjacent:
            raise UserError(
                "unsupported-query",
                "names with Unicode escapes are not maintained",
                detail=_place(prefix),
                hint="Write the name with the characters themselves.",
            )


def operator_names(text: str, start: int) -> Iterator[str]:
    """The names that PostgreSQL reads in the run of operator characters that begins at `start`."""
    end = start
    while end < len(text) and text[end] in _CHARACTERS and text[end : end + 2] not in _COMMENTS:
        end += 1
    while start < end:
        length = _length(text[start:end])
        yield text[start : start + length]
        start += length


def _length(run: str) -> int:
    """How many of the characters belong to the first name."""
    length = len(run)
    while length > 1 and run[length - 1] in "+-" and _BEFORE_SIGN.isdisjoint(run[: length - 1]):
        length -= 1
    return length


def _place(token: Token) -> str:
    return f"At line {token.line}, column {token.col - (token.end - token.start)}."
