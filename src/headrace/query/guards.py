"""Guards against reading a text differently from PostgreSQL.

Operator names. PostgreSQL takes the longest run of operator characters for one name: `a&-1` calls
the operator `&-`, which a user may have created. sqlglot reads the operators that it knows out of
the run.

White space. To PostgreSQL a no-break space (U+00A0) or an ideographic space (U+3000) is a letter:
`a b` with such a character between is one name. sqlglot ends a name there.

Precedence. sqlglot parses many dialects with one order of precedence, which differs from
PostgreSQL's in places. The tree that fits an order of precedence is unique, so it is enough to
check each operator against its operands: where no parentheses stand between them, the operand must
bind tighter.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from headrace.errors import UserError
from headrace.query.refusal import refuse

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
    """Return the names that PostgreSQL reads in the run of operator characters at `start`."""
    end = start
    while end < len(text) and text[end] in _CHARACTERS and text[end : end + 2] not in _COMMENTS:
        end += 1
    while start < end:
        length = _length(text[start:end])
        yield text[start : start + length]
        start += length


def _length(run: str) -> int:
    """Return the number of characters that belong to the first name."""
    length = len(run)
    while length > 1 and run[length - 1] in "+-" and _BEFORE_SIGN.isdisjoint(run[: length - 1]):
        length -= 1
    return length


def _place(token: Token) -> str:
    return f"At line {token.line}, column {token.col - (token.end - token.start)}."


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


_NOT, _IS, _COMPARISON, _RANGE, _OTHER, _SUM, _PRODUCT = range(3, 10)
_POWER, _ZONE, _COLLATE, _SIGN = range(10, 14)
_LEVELS: dict[type[exp.Expr], int] = {
    exp.Or: 1,
    exp.And: 2,
    exp.Not: _NOT,
    exp.Is: _IS,
    exp.NullSafeEQ: _IS,
    exp.NullSafeNEQ: _IS,
    exp.EQ: _COMPARISON,
    exp.NEQ: _COMPARISON,
    exp.LT: _COMPARISON,
    exp.LTE: _COMPARISON,
    exp.GT: _COMPARISON,
    exp.GTE: _COMPARISON,
    exp.Between: _RANGE,
    exp.In: _RANGE,
    exp.Like: _RANGE,
    exp.ILike: _RANGE,
    exp.SimilarTo: _RANGE,
    exp.Escape: _RANGE,
    exp.DPipe: _OTHER,
    exp.RegexpLike: _OTHER,
    exp.RegexpILike: _OTHER,
    exp.StartsWith: _OTHER,
    exp.BitwiseAnd: _OTHER,
    exp.BitwiseOr: _OTHER,
    exp.BitwiseXor: _OTHER,
    exp.BitwiseLeftShift: _OTHER,
    exp.BitwiseRightShift: _OTHER,
    exp.BitwiseNot: _OTHER,
    exp.Sqrt: _OTHER,
    exp.ArrayContainsAll: _OTHER,
    exp.ArrayContainedBy: _OTHER,
    exp.ArrayOverlaps: _OTHER,
    exp.JSONExtract: _OTHER,
    exp.JSONExtractScalar: _OTHER,
    exp.JSONBExtract: _OTHER,
    exp.JSONBExtractScalar: _OTHER,
    exp.JSONBContainsTopKey: _OTHER,
    exp.Add: _SUM,
    exp.Sub: _SUM,
    exp.Mul: _PRODUCT,
    exp.Div: _PRODUCT,
    exp.Mod: _PRODUCT,
    exp.Pow: _POWER,
    exp.AtTimeZone: _ZONE,
    exp.Collate: _COLLATE,
    exp.Neg: _SIGN,
}
_CHAINS = frozenset({1, 2, _OTHER, _SUM, _PRODUCT, _POWER, _ZONE})
_NEGATED = (
    *(exp.In, exp.Between, exp.Is, exp.Like, exp.ILike, exp.SimilarTo, exp.Escape),
    *(exp.RegexpLike, exp.RegexpILike),
)
_ATOM = 100


def check_precedence(tree: exp.Expr) -> None:
    """Refuse an expression whose operators PostgreSQL would group differently, or not at all."""
    for node in tree.walk():
        level = _LEVELS.get(type(node))
        if level is None:
            continue
        for operand, leftmost in _operands(node):
            inner = _level(operand)
            chained = inner == level and ((leftmost and level in _CHAINS) or level in (_NOT, _SIGN))
            if inner <= level and not chained:
                raise refuse(
                    "unsupported-query",
                    f"the order of operators is unclear in: {node.sql(dialect='postgres')}",
                    node,
                    "Put parentheses around the inner expression.",
                )


def _level(node: exp.Expr) -> int:
    """Return the precedence of the node.

    `x NOT IN (…)` is NOT over IN in the tree, but binds as IN.
    """
    if isinstance(node, exp.Not) and isinstance(node.this, _NEGATED):
        node = node.this
    return _LEVELS.get(type(node), _ATOM)


def _operands(node: exp.Expr) -> Iterator[tuple[exp.Expr, bool]]:
    """Return the operands that no bracket closes off, each with whether it stands on the left."""
    match node:
        case exp.Not() | exp.Neg() | exp.BitwiseNot() | exp.Sqrt():
            yield node.this, False
        case exp.Escape():
            # The match below the node stands for both.
            yield node.args["expression"], False
        case exp.Is() | exp.In() | exp.Collate() | exp.AtTimeZone():
            yield node.this, True
        case exp.Between():
            yield node.this, True
            yield node.args["low"], False
            yield node.args["high"], False
        case _:
            yield node.this, True
            yield node.args["expression"], False
