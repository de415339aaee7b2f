"""The databases in which the names of a query are looked up: the home database and attached ones.

PostgreSQL describes a query over tables of its own database only. A table of another one is stood
in for by an empty temporary table with the same columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from psycopg import Connection, sql

from headrace.catalog import State
from headrace.catalog.records import Source
from headrace.engine import HOME, Engine
from headrace.errors import UserError
from headrace.query import table_names
from headrace.query.query_text import Name, with_shadows
from headrace.source.connection import Database
from headrace.source.describe import DescribedColumn, UserObject, describe, user_objects
from headrace.source.introspect import find_table, inspect
from headrace.source.table import SourceTable

UNKNOWN_TYPES = "SELECT name FROM unnest(%s::text[]) AS t (name) WHERE to_regtype(name) IS NULL"


@dataclass(frozen=True)
class Attached:
    """A table of an attached database, and the name of what stands in for it at home."""

    database: int
    table: SourceTable
    shadow: str


@dataclass(frozen=True)
class NameResolver:
    """One look at all databases. `home` is in a transaction that will be rolled back.

    `others` are the attached databases by their aliases.
    """

    home: Connection[Any]
    others: Mapping[str, tuple[int, Database]] = field(default_factory=dict)
    _found: dict[Name, Attached] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def of(engine: Engine, connection: Connection[Any], state: State) -> NameResolver:
        others = {
            one.alias: (one.id, engine.source_database(one))
            for one in state.databases
            if one.id != HOME
        }
        return NameResolver(connection, others)

    def names(self, query: str) -> tuple[Name, ...]:
        """The names of the tables that a query reads; UserError if one leads nowhere."""
        names = table_names(query, self.home.info.dbname)
        for place, name in names:
            self.attached(place, name)
        return names

    def attached(self, place: str | None, name: str) -> Attached | None:
        """The table of an attached database that a name means; None if it means none."""
        alias, dot, schema = (place or "").partition(".")
        if not dot or alias not in self.others:
            return None
        if (place, name) not in self._found:
            number, database = self.others[alias]
            with database.session() as connection:
                table = find_table(connection, schema, name)
            shadow = f"headrace_shadow_{len(self._found) + 1}"
            self._found[place, name] = Attached(number, self._known_types(table), shadow)
        return self._found[place, name]

    def describe(self, query: str, search_path: tuple[str, ...]) -> tuple[DescribedColumn, ...]:
        """What PostgreSQL says that a query returns."""
        return describe(self.home, self._at_home(query), search_path)

    def require_built_in(self, query: str, search_path: tuple[str, ...]) -> None:
        """Refuse a query in which PostgreSQL would call what a user has made; it was described."""
        found = user_objects(self.home, self._at_home(query), search_path)
        if found:
            raise not_built_in(found[0])

    def _at_home(self, query: str) -> str:
        """The query with tables of the home database alone."""
        shadows: dict[Name, str] = {}
        for name in _readable_names(query) if self.others else ():
            found = self.attached(*name)
            if found is not None:
                self.home.execute(_shadow_sql(found))
                shadows[name] = f"pg_temp.{found.shadow}"
        return with_shadows(query, shadows)

    def inspect(self, sources: Iterable[Source]) -> dict[str, SourceTable]:
        """The tables of sources as they are now, by relation; those that are gone are left out."""
        found: dict[str, SourceTable] = {}
        by_database: dict[int, list[Source]] = {}
        for source in sources:
            by_database.setdefault(source.database, []).append(source)
        numbered = dict(self.others.values())
        for number, ours in by_database.items():
            oids = [source.oid for source in ours]
            if number == HOME:
                tables = inspect(self.home, oids)
            else:
                with numbered[number].session() as connection:
                    tables = inspect(connection, oids)
                tables = {oid: self._known_types(table) for oid, table in tables.items()}
            found |= {one.relation: tables[one.oid] for one in ours if one.oid in tables}
        return found

    def _known_types(self, table: SourceTable) -> SourceTable:
        """The table without the types that the home database, which serves results, lacks."""
        declared = sorted({column.declared for column in table.columns})
        unknown = {name for (name,) in self.home.execute(UNKNOWN_TYPES, [declared])}
        columns = (replace(c, type=None) if c.declared in unknown else c for c in table.columns)
        return replace(table, columns=tuple(columns))


def not_built_in(found: UserObject) -> UserError:
    """The error for a name that leads to what a user has made."""
    codes = {"type": "unsupported-type", "collation": "unsupported-query"}
    where = "the query" if found.view is None else f"view {found.view}"
    return UserError(
        codes.get(found.kind, "unsupported-function"),
        f"{found.kind} {found.identity} is not built in",
        detail=f"PostgreSQL resolves a name, an operator or a cast in {where} to it.",
        hint="Only what is built into PostgreSQL is maintained: cast the arguments to the types of"
        " the built-in function, or store the value in the source table.",
    )


def _readable_names(query: str) -> tuple[Name, ...]:
    """The names in a query; what is wrong with it is left for PostgreSQL to say."""
    try:
        return table_names(query)
    except UserError:
        return ()


def _shadow_sql(attached: Attached) -> sql.Composed:
    """A column without a stored type is only there to be named, so any type will do."""
    table = attached.table
    items = [
        sql.SQL("{} {}{}").format(
            sql.Identifier(column.name),
            sql.SQL(column.declared if column.type is not None else "text"),
            sql.SQL(" NOT NULL" if column.not_null else ""),
        )
        for column in table.columns
    ]
    names = {column.number: column for column in table.columns}
    key = next((k for k in table.keys if all(names[number].not_null for number in k)), ())
    if key:
        parts = sql.SQL(", ").join([sql.Identifier(names[number].name) for number in key])
        items.append(sql.SQL("PRIMARY KEY ({})").format(parts))
    return sql.SQL("CREATE TEMPORARY TABLE IF NOT EXISTS {} ({})").format(
        sql.Identifier(attached.shadow), sql.SQL(", ").join(items)
    )
