"""The tables of a PostgreSQL database as the binder sees them, without a project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg

from headrace.query import BoundColumn, BoundTable, BoundView
from headrace.source.introspect import find_table
from headrace.source.views import find_views

SEARCH_PATH = ("public",)


class Database:
    """A schema that looks names up in PostgreSQL, and remembers what it found."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._known: dict[str, BoundTable | BoundView] = {}

    def resolve(self, schema: str | None, name: str) -> BoundTable | BoundView | None:
        if schema not in (None, *SEARCH_PATH):
            return None
        if name not in self._known:
            self._known[name] = self._view(name) or self._table(name)
        return self._known[name]

    @property
    def tables(self) -> Iterable[BoundTable]:
        """The tables that were asked for so far."""
        return (one for one in self._known.values() if isinstance(one, BoundTable))

    def _view(self, name: str) -> BoundView | None:
        with self._connection.transaction():
            # So that every name in the view's text has its schema.
            self._connection.execute("SET LOCAL search_path = pg_catalog")
            view = find_views(self._connection, [("public", name)]).get(("public", name))
        return None if view is None else BoundView("public", name, view.text, view.columns)

    def _table(self, name: str) -> BoundTable:
        table = find_table(self._connection, "public", name, SEARCH_PATH)
        names = {column.number: column.name for column in table.columns}
        return BoundTable(
            name,
            "public",
            name,
            tuple(BoundColumn(c.name, c.physical, c.type, c.declared) for c in table.columns),
            tuple(tuple(names[number] for number in key) for key in table.keys),
        )
