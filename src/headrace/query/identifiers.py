"""Names as PostgreSQL reads them, and the column ids made from them."""

from __future__ import annotations

import re
import string

from sqlglot import exp

from headrace.algebra.scalar import Column
from headrace.types import Type

MAXIMUM_BYTES = 63
_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def fold(name: str) -> str:
    """Return an unquoted name: its ASCII letters in lower case, and only those."""
    return clip(name.translate(_TO_LOWER))


def clip(name: str) -> str:
    """Return a name cut to the 63 bytes that PostgreSQL keeps, never inside a character."""
    return name.encode()[:MAXIMUM_BYTES].decode(errors="ignore")


def name_of(identifier: exp.Expr | str) -> str:
    """Return the name that an identifier means; a bare string is an unquoted one."""
    if isinstance(identifier, str):
        return fold(identifier)
    assert isinstance(identifier, exp.Identifier)
    text: str = identifier.this
    return clip(text) if identifier.args.get("quoted") else fold(text)


def table_name(table: exp.Table) -> tuple[str | None, str]:
    """Return schema and name of a table in FROM; a database's name stands before the schema's."""
    parts = [table.args[part] for part in ("catalog", "db") if table.args.get(part) is not None]
    return ".".join(map(name_of, parts)) or None, name_of(table.this)


class ColumnIds:
    """Hands out the ids of one plan.

    The id of a scanned column depends on which scan it is and on its physical name, so columns
    that a table gains later change nothing. Ids differ by more than case: Spark ignores it.
    """

    def __init__(self) -> None:
        self._scans = 0
        self._computed = 0
        self._recursions: dict[int, tuple[str, exp.CTE]] = {}

    def next_scan(self) -> int:
        self._scans += 1
        return self._scans

    def scanned(self, scan: int, name: str, physical: str, type_: Type) -> Column:
        return Column(f"{_plain(name)}_{scan}_{physical}", type_)

    def computed(self, name: str, type_: Type) -> Column:
        """Return a new column.

        Its id ends in v and a number, as neither ids of scanned columns nor those of stages do.
        """
        self._computed += 1
        return Column(f"{_plain(name)}_v{self._computed}", type_)

    def recursion(self, query: exp.CTE) -> str:
        """Return the relation by which a recursive query reads itself, no two alike in a plan."""
        # The node is kept, since its id() is unique only as long as it lives.
        made = (f"recursion_{len(self._recursions) + 1}", query)
        return self._recursions.setdefault(id(query), made)[0]


def _plain(name: str) -> str:
    """Return the name's ASCII letters, digits and underscores, in lower case and cut short."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:24] or "column"
