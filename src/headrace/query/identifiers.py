"""Names as PostgreSQL reads them."""

from __future__ import annotations

import string

from sqlglot import exp

MAXIMUM_BYTES = 63
_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def fold(name: str) -> str:
    """An unquoted name: its ASCII letters in lower case, and only those."""
    return clip(name.translate(_TO_LOWER))


def clip(name: str) -> str:
    """A name cut to the 63 bytes that PostgreSQL keeps, never inside a character."""
    return name.encode()[:MAXIMUM_BYTES].decode(errors="ignore")


def name_of(identifier: exp.Expr | str) -> str:
    """The name that an identifier means; a bare string is an unquoted one."""
    if isinstance(identifier, str):
        return fold(identifier)
    assert isinstance(identifier, exp.Identifier)
    text: str = identifier.this
    return clip(text) if identifier.args.get("quoted") else fold(text)


def table_name(table: exp.Table) -> tuple[str | None, str]:
    """Schema and name of a table in FROM; a database's name stands before the schema's."""
    parts = [table.args[part] for part in ("catalog", "db") if table.args.get(part) is not None]
    return ".".join(map(name_of, parts)) or None, name_of(table.this)
