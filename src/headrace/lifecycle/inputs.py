"""What the names in a query stand for: stream tables, sources, and views of users."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from psycopg import Connection

from headrace.catalog import State, new_relation_id
from headrace.catalog.records import InputNames, Source, StreamTable, ViewRecord
from headrace.engine import HOME
from headrace.lifecycle.name_resolver import NameResolver
from headrace.lifecycle.names import is_reserved
from headrace.query.query_text import Name
from headrace.relations.definition import Input, as_named
from headrace.source.introspect import find_tables
from headrace.source.table import SourceTable
from headrace.source.views import find_views, forbidden_views

EXISTING = """
SELECT wanted.schema, wanted.name
FROM unnest(%s::text[], %s::text[]) AS wanted (schema, name)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
"""


@dataclass(frozen=True)
class Inputs:
    """What a query reads: inputs as they are recorded or will be, and views to be bound in place.

    Sources have their tables' columns of now; `captured` gives those that are captured already as
    they are recorded.
    """

    inputs: dict[InputNames, Input]
    views: tuple[ViewRecord, ...]
    captured: dict[InputNames, Source]


def find_inputs(
    reach: NameResolver, state: State, query: str, search_path: tuple[str, ...]
) -> Inputs:
    """Look up every name in the query, and in the views that it reads; UserError if one fails."""
    inputs: dict[InputNames, Input] = {}
    captured: dict[InputNames, Source] = {}
    views: dict[tuple[str, str], ViewRecord] = {}
    texts = [query]
    while texts:
        names = reach.names(texts.pop())
        for (schema, _), found in _look_up(reach, state, names, search_path):
            if isinstance(found, ViewRecord):
                if (found.schema, found.name) not in views:
                    views[found.schema, found.name] = found
                    texts.append(found.text)
            elif isinstance(found, StreamTable):
                inputs[as_named(found)] = found
            else:
                database, table = found
                known = state.source(database, table.oid)
                relation = new_relation_id() if known is None else known.relation
                source = source_of(table, relation, database)
                named = as_named(source)
                if database != HOME and schema is not None:
                    named = replace(named, schema=schema)
                inputs[named] = source
                if known is not None:
                    captured[named] = known
    for problem in forbidden_views(reach.home, views).values():
        raise problem
    return Inputs(inputs, tuple(views.values()), captured)


def _look_up(
    reach: NameResolver, state: State, names: Iterable[Name], search_path: tuple[str, ...]
) -> Iterator[tuple[Name, StreamTable | ViewRecord | tuple[int, SourceTable]]]:
    """For each name a stream table, a view, or a table and the number of its database."""
    attached = {name: found for name in names if (found := reach.attached(*name)) is not None}
    at_home = [name for name in names if name not in attached]
    tables = {(table.schema, table.name): table for table in state.stream_tables}
    first = first_named(reach.home, at_home, search_path, tables)
    ours = {
        name: one for name, one in first.items() if isinstance(one, ViewRecord) or one in tables
    }
    others = [name for name in at_home if name not in ours]
    sources = find_tables(reach.home, others, search_path)
    for name in names:
        if name in attached:
            yield name, (attached[name].database, attached[name].table)
        elif name in sources:
            yield name, (HOME, sources[name])
        else:
            one = ours[name]
            yield name, one if isinstance(one, ViewRecord) else tables[one]


def first_named(
    connection: Connection[Any],
    names: Iterable[Name],
    search_path: tuple[str, ...],
    tables: Collection[tuple[str, str]],
) -> dict[Name, ViewRecord | tuple[str, str]]:
    """The first on the search path that is one of `tables`, a user's view, or anything else.

    A name that nothing is called by is left out.
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
    """Those of the names, schema and name, that are taken by anything that takes a table's name."""
    wanted = sorted(names)
    schemas, relations = [schema for schema, _ in wanted], [name for _, name in wanted]
    return set(connection.execute(EXISTING, [schemas, relations]))


def source_of(table: SourceTable, relation: str, database: int) -> Source:
    """The source that captures a table as it is now, in the log of a relation."""
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
