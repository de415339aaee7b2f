"""What a wish comes to: a table over its inputs as they are, or as its text says.

The text is what counts for a table that was never filled: it has no sources yet.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog import State
from headrace.lifecycle.cycle_members import Circle
from headrace.lifecycle.drift import is_whole
from headrace.lifecycle.name_resolver import NameResolver
from headrace.lifecycle.names import quoted_name
from headrace.lifecycle.planned_table import PlannedTable, TableRequest, check, rebind
from headrace.lifecycle.table_spec import TableSpec


def fulfil(
    reach: NameResolver,
    state: State,
    wish: TableSpec,
    moved: Mapping[str, str],
    search_path: tuple[str, ...],
    *,
    relation: str | None = None,
    circle: Circle | None = None,
) -> PlannedTable:
    """The making of a wish. One of a cycle has the relation that the others know it by."""
    old, request, reason = wish.old, wish.request, wish.reason
    if request is None:
        assert old is not None
        if not old.is_uninitialized and is_whole(reach, state, old, moved):
            return rebind(reach, state, old, moved, reason=reason, relation=relation, circle=circle)
        search_path = old.search_path
        name = quoted_name(old.schema, old.name)
        request = TableRequest(name, old.query, old.schedule, old.refresh_mode, dict(old.options))
    return check(
        reach,
        state,
        request,
        search_path,
        old=old,
        reason=reason,
        relation=relation,
        circle=circle,
    )
