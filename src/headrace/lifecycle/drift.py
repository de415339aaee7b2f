"""Whether a stream table's inputs and views are still what its query was bound to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg import Connection

from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.errors import UserError
from headrace.lifecycle.name_resolver import NameResolver
from headrace.lifecycle.planned_table import has_columns
from headrace.relations.definition import define, follow, used_columns
from headrace.source.views import find_views, forbidden_views


def is_whole(
    reach: NameResolver,
    state: State,
    table: StreamTable,
    moved: Mapping[str, str],
) -> bool:
    """Whether the table can be bound again to the inputs it has, `moved` or not.

    False where a source is gone, or has not all that is used of it as it was captured.
    """
    table = follow(table, moved)
    if any(state.origin(one) is None for one in table.inputs) or changed_views(reach.home, table):
        return False
    sources = [source for source in state.sources if source.relation in table.inputs]
    tables = reach.inspect(sources)
    if any(source.relation not in tables for source in sources):
        return False
    try:
        plan = define(table, state).plan
    except UserError:
        return False
    return all(
        has_columns(source, tables[source.relation].columns, used_columns(plan, source.relation))
        for source in sources
    )


def changed_views(connection: Connection[Any], *tables: StreamTable) -> dict[str, str]:
    """Tables whose views are no longer what they were, by relation, with what happened.

    Also those with a view that may no longer be read, or whose owner may not read what it reads.
    """
    names = {(view.schema, view.name) for table in tables for view in table.views}
    if not names:
        return {}
    now = find_views(connection, names)
    changed: dict[str, str] = {}
    for table in tables:
        read = [(view.schema, view.name) for view in table.views]
        forbidden = forbidden_views(connection, read, table.creator)
        for view in table.views:
            found = now.get((view.schema, view.name))
            if found is None:
                changed[table.relation] = f"view {view.schema}.{view.name} was dropped"
                break
            if (found.text, found.columns) != (view.text, view.columns):
                changed[table.relation] = f"view {view.schema}.{view.name} was changed"
            elif (view.schema, view.name) in forbidden:
                changed[table.relation] = f"view {view.schema}.{view.name} lost a right"
    return changed
