"""Parse statements about stream tables from tokens; anything else is an error with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headrace.errors import UserError
from headrace.statements.options import checked
from headrace.statements.statement import (
    AlterStatement,
    CreateStatement,
    DropStatement,
    RefreshStatement,
    Statement,
    TextPosition,
    VerifyStatement,
)
from headrace.statements.tokens import Token, place_of, tokens

_END = Token("symbol", "", 0)


def parse(text: str) -> tuple[Statement, ...]:
    """Return the statements of a text, in order.

    Raise `syntax-error` or `invalid-option` with the place of the error.
    """
    statements = []
    begun: list[Token] = []
    for token in (*tokens(text), Token("symbol", ";", len(text))):
        if (token.kind, token.text) != ("symbol", ";"):
            begun.append(token)
        elif begun:
            statements.append(_StatementParser(text, begun).statement())
            begun = []
    return tuple(statements)


@dataclass
class _StatementParser:
    """One statement's tokens, and how many are read."""

    text: str
    tokens: list[Token]
    read: int = 0

    def statement(self) -> Statement:
        place = place_of(self.text, self.tokens[0].start)
        statement: Statement
        if self.accept("CREATE"):
            replace = self.accept("OR") and self.require("REPLACE")
            self.stream_table()
            name = self.name()
            options = self.options() if self.accept("WITH") else {}
            self.require("AS")
            statement = CreateStatement(place, name, self.rest(), options, replace)
        elif self.accept("ALTER"):
            self.stream_table()
            statement = self.alteration(place, self.name())
        elif self.accept("DROP"):
            self.stream_table()
            if_exists = self.accept("IF") and self.require("EXISTS")
            name = self.name()
            cascade = self.accept("CASCADE")
            if not cascade:
                self.accept("RESTRICT")
            statement = DropStatement(place, name, if_exists, cascade)
        elif self.accept("REFRESH"):
            self.stream_table()
            statement = RefreshStatement(place, self.name(), self.accept("FULL"))
        elif self.accept("VERIFY"):
            self.stream_table()
            name, source = self.name(), self.accept("SOURCE")
            oracle = self.identifier().lower() if self.accept("ORACLE") else "spark"
            sample = self.value() if self.accept("SAMPLE") else None
            statement = VerifyStatement(place, name, source, oracle, sample)
        else:
            raise self.unexpected("CREATE, ALTER, DROP, REFRESH or VERIFY STREAM TABLE")
        if self.read < len(self.tokens):
            raise self.unexpected("the end of the statement")
        return statement

    def alteration(self, place: TextPosition, name: str) -> AlterStatement:
        if self.accept("SET"):
            return AlterStatement(place, name, options=self.options())
        if self.accept("AS"):
            return AlterStatement(place, name, query=self.rest())
        if self.accept("RENAME"):
            self.require("TO")
            return AlterStatement(place, name, rename_to=self.name())
        if self.accept("SUSPEND"):
            return AlterStatement(place, name, act="suspend")
        if self.accept("RESUME"):
            mode: Literal["apply", "rebuild"] | None = None
            if self.accept("APPLY"):
                mode = "apply"
            elif self.accept("REBUILD"):
                mode = "rebuild"
            return AlterStatement(place, name, act="resume", mode=mode)
        raise self.unexpected("SET, AS, RENAME TO, SUSPEND or RESUME")

    def stream_table(self) -> None:
        self.require("STREAM")
        self.require("TABLE")

    def name(self) -> str:
        """Return a name as it is written, for `parse_name` to read."""
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        return ".".join(parts)

    def identifier(self) -> str:
        token = self.next
        if token.kind not in ("word", "name") or token.text[:1].isdigit():
            raise self.unexpected("a name")
        self.read += 1
        return token.text

    def options(self) -> dict[str, str | None]:
        """Return `(option = value, …)`; each option must exist, with that value, and only once."""
        options: dict[str, str | None] = {}
        self.require("(")
        while not options or self.accept(","):
            token = self.next
            option = self.identifier().lower()
            self.require("=")
            value = self.value()
            try:
                if option in options:
                    raise UserError("invalid-option", f"option {option} specified more than once")
                checked({option: value})
            except UserError as error:
                where = f"At {place_of(self.text, token.start)}."
                error.detail = " ".join(part for part in (error.detail, where) if part)
                raise
            options[option] = value
        self.require(")")
        return options

    def value(self) -> str | None:
        """Return a string in single quotes, a bare word, or NULL."""
        token = self.next
        if token.kind == "string" and token.text.startswith("'"):
            self.read += 1
            return token.text[1:-1].replace("''", "'")
        if self.accept("NULL"):
            return None
        if token.kind == "word":
            self.read += 1
            return token.text
        raise self.unexpected("a value in single quotes, or NULL")

    def rest(self) -> str:
        """Return the text up to the end of the statement: a query, which is not parsed here."""
        if self.read == len(self.tokens):
            raise self.unexpected("a query")
        first, last = self.tokens[self.read], self.tokens[-1]
        self.read = len(self.tokens)
        return self.text[first.start : last.end]

    @property
    def next(self) -> Token:
        return self.tokens[self.read] if self.read < len(self.tokens) else _END

    def accept(self, text: str) -> bool:
        """Consume the next token if it is this keyword or symbol; return whether it was."""
        token = self.next
        if token.kind not in ("word", "symbol") or token.text.upper() != text:
            return False
        self.read += 1
        return True

    def require(self, text: str) -> bool:
        if not self.accept(text):
            raise self.unexpected(text)
        return True

    def unexpected(self, expected: str) -> UserError:
        token = self.next
        where = token.start if token is not _END else self.tokens[-1].end
        near = f'at or near "{token.text}"' if token is not _END else "at the end of a statement"
        return UserError(
            "syntax-error",
            f"syntax error {near}: {expected} is expected",
            detail=f"At {place_of(self.text, where)}.",
        )
