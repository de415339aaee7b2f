"""The part of a query that reads only tables whose columns are known.

Tables that read each other have no columns before one of them begins. As PostgreSQL does for a
recursive query, the types are those of the branches of UNION that do not read what is not there
yet:

    SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges e ON …   begins with
    SELECT a, b FROM edges

A UNION in a query of WITH is cut down in the same way. The text of what stays is the user's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headrace.statements.tokens import Token, tokens

# What may follow the branches, and belongs to all of them.
_AFTER_BRANCHES = ("ORDER", "LIMIT", "OFFSET", "FETCH", "FOR")


def beginning(text: str, reads_unknown: Callable[[str], bool]) -> str | None:
    """The query without the branches that read something unknown; None if none is left."""
    if not reads_unknown(text):
        return text
    query = _Query.of(text)

    def begins(body: str, definitions: Sequence[str]) -> str | None:
        branches = [
            branch
            for branch in _branches(body)
            if not reads_unknown(query.with_(definitions, branch))
        ]
        return " UNION ALL ".join(branches) or None

    # A definition without a beginning stays among the seen ones, to tell who reads it.
    seen: list[str] = []
    left: list[str] = []
    for one in query.definitions:
        body = begins(one.body, [*seen, one.text] if query.recursive else seen)
        seen.append(one.text if body is None else f"{one.head}({body})")
        left += [] if body is None else seen[-1:]
    body = begins(query.body, seen)
    return None if body is None else query.with_(left, body)


def first_branch(text: str) -> str:
    """The query with its first branch alone, which gives the columns their names."""
    query = _Query.of(text)
    return query.with_([one.text for one in query.definitions], _branches(query.body)[0])


@dataclass(frozen=True)
class _Definition:
    """One query of WITH: its text up to the query, and the query itself."""

    head: str
    body: str

    @property
    def text(self) -> str:
        return f"{self.head}({self.body})"


@dataclass(frozen=True)
class _Query:
    """A query's text: its queries of WITH, and what follows them."""

    definitions: tuple[_Definition, ...]
    recursive: bool
    body: str

    def with_(self, definitions: Sequence[str], body: str) -> str:
        """A body with these definitions in the place of its own."""
        if not definitions:
            return body
        return f"WITH {'RECURSIVE ' * self.recursive}{', '.join(definitions)} {body}"

    @staticmethod
    def of(text: str) -> _Query:
        found = [one for one in tokens(text) if one.text != ";"]
        if not found or not _is(found[0], "WITH"):
            return _Query((), False, text[: found[-1].end] if found else text)
        recursive = _is(found[1], "RECURSIVE")
        begin = 1 + recursive
        definitions: list[_Definition] = []
        while True:
            as_ = next(i for i, one in _outside(found, begin) if _is(one, "AS"))
            open_ = next(i for i in range(as_, len(found)) if found[i].text == "(")
            close = _closing(found, open_)
            definitions.append(
                _Definition(
                    text[found[begin].start : found[open_].start],
                    text[found[open_].end : found[close].start],
                )
            )
            if close + 1 == len(found) or found[close + 1].text != ",":
                body = text[found[close].end : found[-1].end]
                return _Query(tuple(definitions), recursive, body)
            begin = close + 2


def _branches(text: str) -> list[str]:
    """The branches of a UNION, or the whole text where it is anything else.

    Parentheses around all of it say nothing. EXCEPT takes from all that stands before it.
    """
    found = [one for one in tokens(text) if one.text != ";"]
    if found and found[0].text == "(" and _closing(found, 0) == len(found) - 1:
        return _branches(text[found[0].end : found[-1].start])
    outside = [(p, one) for p, one in _outside(found, 0) if not (p and _names_next(found[p - 1]))]
    unions = [place for place, one in outside if _is(one, "UNION")]
    if not unions or _is(found[0], "WITH") or any(_is(one, "EXCEPT") for _, one in outside):
        return [text]
    behind = (p for p, one in outside if p > unions[-1] and _is(one, *_AFTER_BRANCHES))
    end = next(behind, len(found))
    begins = [0, *(p + 1 + _is(found[p + 1], "ALL", "DISTINCT") for p in unions)]
    ends = [*unions, end]
    return [
        text[found[begin].start : found[last - 1].end]
        for begin, last in zip(begins, ends, strict=True)
    ]


def _is(token: Token, *words: str) -> bool:
    return token.kind == "word" and token.text.upper() in words


def _names_next(token: Token) -> bool:
    """Whether the word that follows is a name, whatever it is elsewhere: AS limit, t.order."""
    return _is(token, "AS") or token.text == "."


def _outside(found: Sequence[Token], begin: int) -> Iterator[tuple[int, Token]]:
    """The tokens that stand in no parentheses, with their places."""
    depth = 0
    for place in range(begin, len(found)):
        token = found[place]
        depth -= token.text == ")"
        if depth == 0 and token.text != ")":
            yield place, token
        depth += token.text == "("


def _closing(found: Sequence[Token], open_: int) -> int:
    """The place of the parenthesis that closes one."""
    depth = 0
    for place in range(open_, len(found)):
        depth += (found[place].text == "(") - (found[place].text == ")")
        if depth == 0:
            return place
    return len(found) - 1
