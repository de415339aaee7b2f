"""Detect whether a table's inputs and views still fit its query, and bind the table again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from psycopg import Connection

from headrace.catalog import State, new_relation_id
from headrace.catalog.records import Status, StreamTable
from headrace.errors import Transient, UserError
from headrace.lifecycle.cycle_members import CycleMembers
from headrace.lifecycle.name_resolver import NameResolver
from headrace.lifecycle.names import quoted_name
from headrace.lifecycle.planned_table import (
    PlannedTable,
    TableRequest,
    check,
    has_columns,
    key_names,
    output_columns,
    related_cycle,
)
from headrace.lifecycle.table_spec import TableSpec
from headrace.publish.partitioning import check_partition
from headrace.publish.served_key import check_key
from headrace.query import bind
from headrace.relations.definition import (
    InputSchema,
    define,
    follow,
    inputs_of,
    new_definition,
    rules_of,
    stored_edges,
    used_columns,
)
from headrace.source.server import home_collation
from headrace.source.views import FoundView, find_views, forbidden_views, look_at_views


def fits_inputs(
    resolver: NameResolver,
    state: State,
    table: StreamTable,
    moved: Mapping[str, str],
) -> bool:
    """Return whether the table can be bound again to the inputs it has, `moved` or not.

    False where a source is gone, or no longer has the used columns as they were captured.
    """
    table = follow(table, moved)
    if any(state.origin(relation) is None for relation in table.inputs) or changed_views(
        resolver.home, table
    ):
        return False
    sources = [source for source in state.sources if source.relation in table.inputs]
    tables = resolver.inspect(sources)
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


def changed_views(
    connection: Connection[Any], *tables: StreamTable, wait: bool = True
) -> dict[str, str]:
    """Return, by relation, how views of these tables were changed, dropped or lost rights.

    Also those with a view that may no longer be read, or whose owner may not read what it reads.
    Without `wait` the text of a view that is locked counts as unchanged until a later look.
    """
    names = {(view.schema, view.name) for table in tables for view in table.views}
    if not names:
        return {}
    lost: dict[str, str] = {}
    for table in tables:
        read = [(view.schema, view.name) for view in table.views]
        for schema, name in forbidden_views(connection, read, table.creator):
            lost[table.relation] = f"view {schema}.{name} lost a right"
    now: Mapping[tuple[str, str], FoundView | None]
    try:
        now = find_views(connection, names) if wait else look_at_views(connection, names)
    except Transient:
        # The text of a view waits for the locks of what it reads, which its owner may hold.
        if lost:
            return lost
        raise
    changed: dict[str, str] = {}
    for table in tables:
        for view in table.views:
            if (view.schema, view.name) not in now:
                changed[table.relation] = f"view {view.schema}.{view.name} was dropped"
                break
            current = now[view.schema, view.name]
            if current is not None and (current.text, current.columns) != (view.text, view.columns):
                changed[table.relation] = f"view {view.schema}.{view.name} was changed"
    return lost | changed


def rebind(
    resolver: NameResolver,
    state: State,
    table: StreamTable,
    moved: Mapping[str, str],
    *,
    reason: str,
    relation: str | None = None,
    cycle_members: CycleMembers | None = None,
) -> PlannedTable:
    """Bind the table again to the same inputs; `moved` has the new relations of some.

    Its columns keep their names; a query that can no longer give them is refused.
    """
    rebuilt = replace(
        follow(table, moved),
        relation=relation or new_relation_id(),
        status=Status.INITIALIZING,
        reason=None,
        frontier={},
        epoch=0,
        held=False,
        awaits_rebuild=False,
    )
    inputs = inputs_of(rebuilt, state)
    collation = home_collation(resolver.home)
    rules = rules_of(collation, table.options)
    input_schema = InputSchema.of(inputs, table.views, state, table.search_path, rules)
    bound = bind(table.query, input_schema, in_cycle=cycle_members is not None, rules=rules)
    _require_built_in_still(resolver, table)
    if cycle_members is not None:
        cycle_members.admit(rebuilt.relation, table.refresh_mode, bound)
    if bound.names != tuple(column.name for column in table.columns):
        missing = [c.name for c in table.columns if c.name not in bound.names]
        raise UserError("unknown-column", f"column {', '.join(missing)} would disappear")
    if tuple(c.type for c in bound.plan.columns) == tuple(c.type for c in table.columns):
        columns = table.columns
    else:
        columns = output_columns(bound, resolver.describe(table.query, table.search_path))
        check_partition(columns, table.options)
    cycle = related_cycle(cycle_members)
    definition = new_definition(rebuilt.relation, bound, input_schema, cycle)
    key = key_names(columns, definition)
    check_key(columns, key, table.options)
    rebuilt = replace(
        rebuilt, columns=columns, key=key, edges=stored_edges(bound), default_collation=collation
    )
    return PlannedTable(
        rebuilt, definition, tuple(inputs.values()), bound.notices, reason, table, cycle
    )


def _require_built_in_still(resolver: NameResolver, table: StreamTable) -> None:
    """Refuse a table whose query now resolves to an object that a user has made.

    Where a table or a column has another name by now, PostgreSQL cannot read the text, and what it
    said when the table was created holds.
    """
    try:
        resolver.describe(table.query, table.search_path)
    except UserError:
        return
    resolver.require_built_in(table.query, table.search_path)


def plan_spec(
    resolver: NameResolver,
    state: State,
    spec: TableSpec,
    moved: Mapping[str, str],
    search_path: tuple[str, ...],
    *,
    relation: str | None = None,
    cycle_members: CycleMembers | None = None,
) -> PlannedTable:
    """Plan the table of one spec; a member of a cycle has the relation that others know."""
    old, request, reason = spec.old, spec.request, spec.reason
    if request is None:
        assert old is not None
        if not old.is_uninitialized and fits_inputs(resolver, state, old, moved):
            return rebind(
                resolver,
                state,
                old,
                moved,
                reason=reason,
                relation=relation,
                cycle_members=cycle_members,
            )
        search_path = old.search_path
        name = quoted_name(old.schema, old.name)
        request = TableRequest(name, old.query, old.schedule, old.refresh_mode, dict(old.options))
    return check(
        resolver,
        state,
        request,
        search_path,
        old=old,
        reason=reason,
        relation=relation,
        cycle_members=cycle_members,
    )
