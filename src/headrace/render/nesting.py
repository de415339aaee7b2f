"""Queries inside queries: in FROM, or in WITH where they would be nested too deeply.

Each level of nesting costs the printer of SQL about ten of Python's thousand frames, and the
expressions inside need most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from sqlglot import exp

from headrace.render.pieces import as_table
from headrace.render.scalars import identifier

DEEPEST = 16


class Nesting:
    """The subqueries of one query, with the names that it hands out for them."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._level = 0
        self._named: list[exp.CTE] = []

    def alias(self) -> str:
        return f"q{next(self._numbers)}"

    def table(self, make: Callable[[], exp.Query], name: str | None = None) -> exp.Expression:
        """The query that `make` gives, as a table under a name."""
        outer = self._level
        cut = outer == DEEPEST
        self._level = 0 if cut else outer + 1
        query = make()
        self._level = outer
        name = name or self.alias()
        if not cut:
            return as_table(query, name)
        defined = f"w{len(self._named) + 1}"
        alias = exp.TableAlias(this=identifier(defined))
        self._named.append(exp.CTE(this=query, alias=alias))
        return exp.Table(this=identifier(defined), alias=exp.TableAlias(this=identifier(name)))

    def whole(self, query: exp.Query) -> exp.Query:
        """The outermost query, with all that was put into WITH before it."""
        if self._named:
            query.set("with_", exp.With(expressions=self._named))
        return query
