"""Tables of attached databases in a text for PostgreSQL, which knows only those of its own."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headrace.query.guard import guarded
from headrace.query.identifiers import table_name
from headrace.query.parse import parse, tokenize
from headrace.query.with_names import defined_by_with, named_tables

Name = tuple[str | None, str]


@guarded()
def with_shadows(text: str, shadows: Mapping[Name, str]) -> str:
    """The same text reading other tables: `shadows` gives the SQL that stands in for each name.

    Where the text gives the table no name of its own, it keeps the one that it has.
    """
    if not shadows:
        return text
    for table in sorted(named_tables(parse(text)), key=_begin, reverse=True):
        shadow = shadows.get(table_name(table))
        if shadow is None or defined_by_with(table) is not None:
            continue
        end = table.this.meta["end"] + 1
        called = "" if table.args.get("alias") else f" AS {text[table.this.meta['start'] : end]}"
        text = f"{text[: _begin(table)]}{shadow}{called}{text[end:]}"
    return text


def without_semicolon(text: str) -> str:
    """The text without a semicolon after its last token."""
    tokens = tokenize(text)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        text = text[: tokens.pop().start]
    return text


def _begin(table: exp.Table) -> int:
    parts = (table.args.get(part) for part in ("catalog", "db", "this"))
    return min(int(part.meta["start"]) for part in parts if part is not None)
