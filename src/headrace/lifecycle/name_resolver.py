"""Resolve the names in a query to stream tables, sources and views, at home and attached.

PostgreSQL describes queries over tables of its own database only. An empty temporary table with
the same columns represents a table of another database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from psycopg import Connection, sql

from headrace.catalog import State, new_relation_id
from headrace.catalog.records import InputNames, Source, StreamTable, ViewRecord
from headrace.engine import HOME, Engine
from headrace.errors import UserError
from headrace.lifecycle.names import is_reserved
from headrace.query import table_names
from headrace.query.query_text import Name, with_shadows
from headrace.relations.definition import Input, as_named
from headrace.source.connection import Database
from headrace.source.describe import DescribedColumn, UserObject, describe, user_objects
from headrace.source.introspect import find_table, find_tables, inspect
from headrace.source.table import SourceTable
from headrace.source.views import find_views, forbidden_views

UNKNOWN_TYPES = "SELECT name FROM unnest(%s::text[]) AS t (name) WHERE to_regtype(name) IS NULL"


@dataclass(frozen=True)
class Attached:
    """A table of an attached database, and the name of the table that represents it at home."""

    database: int
    table: SourceTable
    shadow: str


@dataclass(frozen=True)
class NameResolver:
    """Access to all databases by name. `home` is in a transaction that will be rolled back.

    `others` are the attached databases by their aliases.
    """

    home: Connection[Any]
    others: Mapping[str, tuple[int, Database]] = field(default_factory=dict)
    _found: dict[Name, Attached] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def of(engine: Engine, connection: Connection[Any], state: State) -> NameResolver:
        others = {
            database.alias: (database.id, engine.source_database(database))
            for database in state.databases
            if database.id != HOME
        }
        return NameResolver(connection, others)

    def names(self, query: str) -> tuple[Name, ...]:
        """Return the names of the tables that a query reads, or raise UserError."""
        names = table_names(query, self.home.info.dbname)
        for place, name in names:
            self.attached(place, name)
        return names

    def attached(self, place: str | None, name: str) -> Attached | None:
        """Return the table of an attached database that the name means, or None."""
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
        """Return the columns of a query as PostgreSQL describes them."""
        return describe(self.home, self._at_home(query), search_path)

    def require_built_in(self, query: str, search_path: tuple[str, ...]) -> None:
        """Refuse a query that resolves to an object that a user has made."""
        objects = user_objects(self.home, self._at_home(query), search_path)
        if objects:
            raise not_built_in(objects[0])

    def _at_home(self, query: str) -> str:
        """Return the query with tables of the home database alone."""
        shadows: dict[Name, str] = {}
        for name in _readable_names(query) if self.others else ():
            attached = self.attached(*name)
            if attached is not None:
                self.home.execute(_shadow_sql(attached))
                shadows[name] = f"pg_temp.{attached.shadow}"
        return with_shadows(query, shadows)

    def inspect(self, sources: Iterable[Source]) -> dict[str, SourceTable]:
        """Return the tables of sources as they are now, by relation, without dropped ones."""
        by_relation: dict[str, SourceTable] = {}
        by_database: dict[int, list[Source]] = {}
        for source in sources:
            by_database.setdefault(source.database, []).append(source)
        numbered = dict(self.others.values())
        for number, database_sources in by_database.items():
            oids = [source.oid for source in database_sources]
            if number == HOME:
                tables = inspect(self.home, oids)
            else:
                with numbered[number].session() as connection:
                    tables = inspect(connection, oids)
                tables = {oid: self._known_types(table) for oid, table in tables.items()}
            by_relation |= {
                source.relation: tables[source.oid]
                for source in database_sources
                if source.oid in tables
            }
        return by_relation

    def _known_types(self, table: SourceTable) -> SourceTable:
        """Return the table without the types that the home database lacks."""
        declared = sorted({column.declared for column in table.columns})
        unknown = {name for (name,) in self.home.execute(UNKNOWN_TYPES, [declared])}
        columns = (replace(c, type=None) if c.declared in unknown else c for c in table.columns)
        return replace(table, columns=tuple(columns))


def not_built_in(object_: UserObject) -> UserError:
    """Return the error for a name that resolves to an object that a user has made."""
    codes = {"type": "unsupported-type", "collation": "unsupported-query"}
    where = "the query" if object_.view is None else f"view {object_.view}"
    return UserError(
        codes.get(object_.kind, "unsupported-function"),
        f"{object_.kind} {object_.identity} is not built in",
        detail=f"PostgreSQL resolves a name, an operator or a cast in {where} to it.",
        hint="Only what is built into PostgreSQL is maintained: cast the arguments to the types of"
        " the built-in function, or store the value in the source table.",
    )


def _readable_names(query: str) -> tuple[Name, ...]:
    """Return the names in a query; errors in it are left for PostgreSQL to report."""
    try:
        return table_names(query)
    except UserError:
        return ()


def _shadow_sql(attached: Attached) -> sql.Composed:
    """Return the SQL of an empty temporary table; columns without a stored type become text."""
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


EXISTING = """
SELECT wanted.schema, wanted.name
FROM unnest(%s::text[], %s::text[]) AS wanted (schema, name)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
"""


@dataclass(frozen=True)
class Inputs:
    """What a query reads: inputs as they are recorded or will be, and views to bind in place.

    Sources have their tables' columns of now; `captured` gives those that are captured already as
    they are recorded.
    """

    inputs: dict[InputNames, Input]
    views: tuple[ViewRecord, ...]
    captured: dict[InputNames, Source]


def find_inputs(
    resolver: NameResolver, state: State, query: str, search_path: tuple[str, ...]
) -> Inputs:
    """Resolve every name in the query and in the views that it reads, or raise UserError."""
    inputs: dict[InputNames, Input] = {}
    captured: dict[InputNames, Source] = {}
    views: dict[tuple[str, str], ViewRecord] = {}
    texts = [query]
    while texts:
        names = resolver.names(texts.pop())
        for (schema, _), origin in _look_up(resolver, state, names, search_path):
            if isinstance(origin, ViewRecord):
                if (origin.schema, origin.name) not in views:
                    views[origin.schema, origin.name] = origin
                    texts.append(origin.text)
            elif isinstance(origin, StreamTable):
                inputs[as_named(origin)] = origin
            else:
                database, table = origin
                recorded = state.source(database, table.oid)
                relation = new_relation_id() if recorded is None else recorded.relation
                source = source_of(table, relation, database)
                named = as_named(source)
                if database != HOME and schema is not None:
                    named = replace(named, schema=schema)
                inputs[named] = source
                if recorded is not None:
                    captured[named] = recorded
    for problem in forbidden_views(resolver.home, views).values():
        raise problem
    return Inputs(inputs, tuple(views.values()), captured)


def _look_up(
    resolver: NameResolver, state: State, names: Iterable[Name], search_path: tuple[str, ...]
) -> Iterator[tuple[Name, StreamTable | ViewRecord | tuple[int, SourceTable]]]:
    """Yield for each name a stream table, a view, or a table and the number of its database."""
    attached = {
        name: attached_table
        for name in names
        if (attached_table := resolver.attached(*name)) is not None
    }
    at_home = [name for name in names if name not in attached]
    tables = {(table.schema, table.name): table for table in state.stream_tables}
    first = first_named(resolver.home, at_home, search_path, tables)
    home_origins = {
        name: origin
        for name, origin in first.items()
        if isinstance(origin, ViewRecord) or origin in tables
    }
    others = [name for name in at_home if name not in home_origins]
    sources = find_tables(resolver.home, others, search_path)
    for name in names:
        if name in attached:
            yield name, (attached[name].database, attached[name].table)
        elif name in sources:
            yield name, (HOME, sources[name])
        else:
            origin = home_origins[name]
            yield name, origin if isinstance(origin, ViewRecord) else tables[origin]


def first_named(
    connection: Connection[Any],
    names: Iterable[Name],
    search_path: tuple[str, ...],
    tables: Collection[tuple[str, str]],
) -> dict[Name, ViewRecord | tuple[str, str]]:
    """Return the first match on the search path: one of `tables`, a user's view, or other.

    A name that no object has is left out.
    """
    places = {
        (schema, name): [(place, name) for place in (search_path if schema is None else (schema,))]
        for schema, name in names
    }
    candidates = {place for options in places.values() for place in options}
    views = {
        place: ViewRecord(*place, view.text, view.columns)
        for place, view in find_views(connection, candidates).items()
        if not is_reserved(place[0])
    }
    taken = {*tables, *views, *existing(connection, candidates)}
    first = {
        name: next(filter(taken.__contains__, options), None) for name, options in places.items()
    }
    return {
        name: place if place in tables else views.get(place, place)
        for name, place in first.items()
        if place is not None
    }


def existing(connection: Connection[Any], names: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of the (schema, name) pairs that an object of a table's namespace has."""
    pairs = sorted(names)
    schemas, relations = [schema for schema, _ in pairs], [name for _, name in pairs]
    return set(connection.execute(EXISTING, [schemas, relations]))


def source_of(table: SourceTable, relation: str, database: int) -> Source:
    """Return the source that captures a table as it is now, in the log of a relation."""
    return Source(
        relation,
        database,
        table.oid,
        table.schema,
        table.name,
        table.columns,
        table.keys,
        table.storage,
        table.row_triggers,
    )
