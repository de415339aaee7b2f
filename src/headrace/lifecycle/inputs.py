"""What the names in a query stand for: stream tables, sources, and views of users."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from psycopg import Connection, sql

from headrace.catalog import State, new_relation_id
from headrace.catalog.records import Named, Source, StreamTable, View
from headrace.definition import Input, as_named
from headrace.engine import HOME
from headrace.lifecycle.names import is_reserved
from headrace.lifecycle.reach import Reach
from headrace.source.introspect import find_table
from headrace.source.table import SourceTable
from headrace.source.view_rights import forbidden_views
from headrace.source.views import find_views


@dataclass(frozen=True)
class Inputs:
    """What a query reads: inputs as they are recorded or will be, and views to be bound in place.

    Sources have their tables' columns of now; `captured` gives those that are captured already as
    they are recorded.
    """

    inputs: dict[Named, Input]
    views: tuple[View, ...]
    captured: dict[Named, Source]


def find_inputs(reach: Reach, state: State, query: str, search_path: tuple[str, ...]) -> Inputs:
    """Look up every name in the query, and in the views that it reads; UserError if one fails."""
    inputs: dict[Named, Input] = {}
    captured: dict[Named, Source] = {}
    views: dict[tuple[str, str], View] = {}
    texts = [query]
    while texts:
        for schema, name in reach.names(texts.pop()):
            found = _look_up(reach, state, schema, name, search_path)
            if isinstance(found, View):
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
    reach: Reach,
    state: State,
    schema: str | None,
    name: str,
    search_path: tuple[str, ...],
) -> StreamTable | View | tuple[int, SourceTable]:
    """A stream table, a view, or a table and the number of its database."""
    attached = reach.attached(schema, name)
    if attached is not None:
        return attached.database, attached.table
    tables = {(table.schema, table.name): table for table in state.stream_tables}
    found = first_named(reach.home, schema, name, search_path, tables)
    if isinstance(found, View):
        return found
    if found is not None and found in tables:
        return tables[found]
    return HOME, find_table(reach.home, schema, name, search_path)


def first_named(
    connection: Connection[Any],
    schema: str | None,
    name: str,
    search_path: tuple[str, ...],
    tables: Collection[tuple[str, str]],
) -> View | tuple[str, str] | None:
    """The first on the search path that is one of `tables`, a user's view, or anything else."""
    for place in (schema,) if schema is not None else search_path:
        if (place, name) in tables:
            return place, name
        view = find_views(connection, [(place, name)]).get((place, name))
        if view is not None and not is_reserved(place):
            return View(place, name, view.text, view.columns)
        if exists(connection, place, name):
            return place, name
    return None


def exists(connection: Connection[Any], schema: str, name: str) -> bool:
    """Whether anything that takes up a table's name is called that."""
    regclass = sql.Identifier(schema, name).as_string()
    row = connection.execute("SELECT to_regclass(%s)", [regclass]).fetchone()
    return row is not None and row[0] is not None


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
