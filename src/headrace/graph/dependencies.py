"""The dependency graph: an edge from every relation to each stream table that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import networkx as nx

from headrace.catalog.records import StreamTable
from headrace.graph.components import Name, components, graph_of


def upstream(tables: Iterable[StreamTable], table: StreamTable) -> tuple[StreamTable, ...]:
    """Return the table and every stream table below it, each after all that it reads.

    Tables that read each other stand side by side, in the order of their names.
    """
    tables_by_relation = {stream_table.relation: stream_table for stream_table in (*tables, table)}
    graph = graph_of(
        {stream_table.relation: stream_table.inputs for stream_table in tables_by_relation.values()}
    )
    relations = nx.ancestors(graph, table.relation) | {table.relation}
    return ordered(
        tables_by_relation[relation] for relation in relations if relation in tables_by_relation
    )


def downstream(tables: Iterable[StreamTable], *relations: str) -> tuple[StreamTable, ...]:
    """Return every other stream table that reads one of them, directly or not, in order."""
    tables_by_relation = {stream_table.relation: stream_table for stream_table in tables}
    graph = graph_of(
        {stream_table.relation: stream_table.inputs for stream_table in tables_by_relation.values()}
    )
    relations_below = {
        t for relation in relations if relation in graph for t in nx.descendants(graph, relation)
    }
    return ordered(
        tables_by_relation[relation]
        for relation in relations_below
        if relation in tables_by_relation
    )


def in_order(reads: Mapping[Name, Iterable[Name]]) -> tuple[Name, ...]:
    """Return the names, each after those that it reads; names that read each other side by side."""
    return tuple(name for component in components(reads) for name in component.members)


def ordered(stream_tables: Iterable[StreamTable]) -> tuple[StreamTable, ...]:
    """Return tables in the order of components, equals by name: the order is always the same."""
    tables = {(table.schema, table.name, table.relation): table for table in stream_tables}
    keys = {table.relation: key for key, table in tables.items()}
    reads = {
        key: [keys[relation] for relation in table.inputs if relation in keys]
        for key, table in tables.items()
    }
    return tuple(tables[key] for key in in_order(reads))
