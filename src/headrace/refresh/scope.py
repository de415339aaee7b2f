"""Determine which tables are published together: whole groups, and all that they read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.graph import upstream
from headrace.graph.dependencies import ordered
from headrace.graph.diamonds import ConsistencyGroup, groups
from headrace.graph.live import grouping_inputs
from headrace.graph.policy import declared_groups, units
from headrace.settings import Settings

Reads = tuple[tuple[str, tuple[str, ...]], ...]


def consistency_groups(state: State, settings: Settings) -> Mapping[str, tuple[str, ...]]:
    """Return, for the relation of every stream table, the relations that move with it.

    Empty for a table that is alone. A group that is not atomic moves table by table, and cycles in
    it as a whole.
    """
    tables = {table.relation: table for table in state.stream_tables}
    all_groups = _groups(
        tuple((table.relation, grouping_inputs(table)) for table in tables.values()),
        tuple(declared_groups(t for t in tables.values() if not t.is_uninitialized).items()),
    )
    return {
        name: () if unit.is_single else unit.members
        for unit in units(all_groups, tables, settings)
        for name in unit.members
    }


def together(
    state: State, tables: Iterable[StreamTable], settings: Settings
) -> tuple[StreamTable, ...]:
    """Return the tables, all that they read and all groups of these, in order of dependency."""
    tables_by_relation = {table.relation: table for table in state.stream_tables}
    grouped = consistency_groups(state, settings)
    members: dict[str, StreamTable] = {}
    waiting = list(tables)
    while waiting:
        table = waiting.pop()
        if table.relation in members:
            continue
        for needed in upstream(state.stream_tables, table):
            members[needed.relation] = needed
            waiting += [
                tables_by_relation[name]
                for name in grouped.get(needed.relation, ())
                if name not in members
            ]
    return ordered(members.values())


@lru_cache(maxsize=64)
def _groups(
    reads: Reads, declared: tuple[tuple[str, str], ...]
) -> tuple[ConsistencyGroup[str], ...]:
    return groups(dict(reads), dict(declared))
