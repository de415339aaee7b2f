"""Cut a query down to its non-recursive term: what reads only tables whose columns are known.

Tables that read each other have no columns before one of them begins. As PostgreSQL does for a
recursive query, the types are those of the branches of UNION that do not read a table without
columns:

    SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges e ON …   begins with
    SELECT a, b FROM edges

A UNION in a query of WITH is cut down in the same way. The text of what stays is the user's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headrace.statements.tokens import Token, tokens

# Clauses that may follow the branches, and belong to all of them.
_AFTER_BRANCHES = ("ORDER", "LIMIT", "OFFSET", "FETCH", "FOR")


def beginning(text: str, reads_unknown: Callable[[str], bool]) -> str | None:
    """Return the query without the branches that read unknown tables; None if none is left."""
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

    # A definition without a non-recursive term stays visible, so that its readers are found.
    visible_definitions: list[str] = []
    left: list[str] = []
    for definition in query.definitions:
        body = begins(
            definition.body,
            [*visible_definitions, definition.text] if query.recursive else visible_definitions,
        )
        visible_definitions.append(
            definition.text if body is None else f"{definition.head}({body})"
        )
        left += [] if body is None else visible_definitions[-1:]
    body = begins(query.body, visible_definitions)
    return None if body is None else query.with_(left, body)


def first_branch(text: str) -> str:
    """Return the query with its first branch alone, which gives the columns their names."""
    query = _Query.of(text)
    return query.with_(
        [definition.text for definition in query.definitions], _branches(query.body)[0]
    )


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
        """Return a body with these definitions in the place of its own."""
        if not definitions:
            return body
        return f"WITH {'RECURSIVE ' * self.recursive}{', '.join(definitions)} {body}"

    @staticmethod
    def of(text: str) -> _Query:
        query_tokens = [token for token in tokens(text) if token.text != ";"]
        if not query_tokens or not _is(query_tokens[0], "WITH"):
            return _Query((), False, text[: query_tokens[-1].end] if query_tokens else text)
        recursive = _is(query_tokens[1], "RECURSIVE")
        begin = 1 + recursive
        definitions: list[_Definition] = []
        while True:
            as_ = next(i for i, token in _outside(query_tokens, begin) if _is(token, "AS"))
            open_ = next(i for i in range(as_, len(query_tokens)) if query_tokens[i].text == "(")
            close = _closing(query_tokens, open_)
            definitions.append(
                _Definition(
                    text[query_tokens[begin].start : query_tokens[open_].start],
                    text[query_tokens[open_].end : query_tokens[close].start],
                )
            )
            if close + 1 == len(query_tokens) or query_tokens[close + 1].text != ",":
                body = text[query_tokens[close].end : query_tokens[-1].end]
                return _Query(tuple(definitions), recursive, body)
            begin = close + 2


def _branches(text: str) -> list[str]:
    """Return the branches of a UNION, or the whole text where it is anything else.

    Parentheses around the whole text change nothing. EXCEPT takes rows from all branches before it.
    """
    query_tokens = [token for token in tokens(text) if token.text != ";"]
    if (
        query_tokens
        and query_tokens[0].text == "("
        and _closing(query_tokens, 0) == len(query_tokens) - 1
    ):
        return _branches(text[query_tokens[0].end : query_tokens[-1].start])
    outside = [
        (p, token)
        for p, token in _outside(query_tokens, 0)
        if not (p and _names_next(query_tokens[p - 1]))
    ]
    unions = [place for place, token in outside if _is(token, "UNION")]
    if (
        not unions
        or _is(query_tokens[0], "WITH")
        or any(_is(token, "EXCEPT") for _, token in outside)
    ):
        return [text]
    behind = (p for p, token in outside if p > unions[-1] and _is(token, *_AFTER_BRANCHES))
    end = next(behind, len(query_tokens))
    begins = [0, *(p + 1 + _is(query_tokens[p + 1], "ALL", "DISTINCT") for p in unions)]
    ends = [*unions, end]
    return [
        text[query_tokens[begin].start : query_tokens[last - 1].end]
        for begin, last in zip(begins, ends, strict=True)
    ]


def _is(token: Token, *words: str) -> bool:
    return token.kind == "word" and token.text.upper() in words


def _names_next(token: Token) -> bool:
    """Return whether the next word is a name, whatever it is elsewhere: AS limit, t.order."""
    return _is(token, "AS") or token.text == "."


def _outside(query_tokens: Sequence[Token], begin: int) -> Iterator[tuple[int, Token]]:
    """Return the tokens that stand in no parentheses, with their places."""
    depth = 0
    for place in range(begin, len(query_tokens)):
        token = query_tokens[place]
        depth -= token.text == ")"
        if depth == 0 and token.text != ")":
            yield place, token
        depth += token.text == "("


def _closing(query_tokens: Sequence[Token], open_: int) -> int:
    """Return the place of the parenthesis that closes one."""
    depth = 0
    for place in range(open_, len(query_tokens)):
        depth += (query_tokens[place].text == "(") - (query_tokens[place].text == ")")
        if depth == 0:
            return place
    return len(query_tokens) - 1
