"""The dependency graph: an edge from every relation to each stream table that reads it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

import networkx as nx

from headrace.catalog.records import StreamTable

Name = TypeVar("Name", bound=Hashable)


def _graph(tables: Iterable[StreamTable]) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    for table in tables:
        graph.add_node(table.relation)
        graph.add_edges_from((relation, table.relation) for relation in table.inputs)
    return graph


def upstream(tables: Iterable[StreamTable], table: StreamTable) -> tuple[StreamTable, ...]:
    """The table and every stream table below it, each after all that it reads."""
    known = {one.relation: one for one in (*tables, table)}
    graph = _graph(known.values())
    wanted = nx.ancestors(graph, table.relation) | {table.relation}
    return _ordered(graph, wanted, known)


def downstream(tables: Iterable[StreamTable], *relations: str) -> tuple[StreamTable, ...]:
    """Every stream table that reads one of them, directly or not, each after all that it reads."""
    known = {one.relation: one for one in tables}
    graph = _graph(known.values())
    wanted = {t for one in relations if one in graph for t in nx.descendants(graph, one)}
    return _ordered(graph, wanted, known)


def in_order(reads: Mapping[Name, Iterable[Name]]) -> tuple[Name, ...]:
    """The names, each after those that it reads; `Cycle` with the way round if there is one."""
    graph: nx.DiGraph[Name] = nx.DiGraph()
    for name, others in reads.items():
        graph.add_node(name)
        graph.add_edges_from((other, name) for other in others)
    try:
        return tuple(nx.lexicographical_topological_sort(graph))
    except nx.NetworkXUnfeasible:
        raise Cycle(tuple(start for start, _ in nx.find_cycle(graph))) from None


class Cycle(Exception):
    """Names that read each other in a circle."""

    def __init__(self, names: tuple[Any, ...]) -> None:
        super().__init__(" → ".join(map(str, names)))
        self.names = names


def _ordered(
    graph: nx.DiGraph[str], wanted: set[str], known: dict[str, StreamTable]
) -> tuple[StreamTable, ...]:
    """In topological order, and among equals by name, so that the order is always the same."""

    def name(relation: str) -> tuple[str, str]:
        table = known.get(relation)
        return ("", relation) if table is None else (table.schema, table.name)

    order = nx.lexicographical_topological_sort(graph.subgraph(wanted), key=name)
    return tuple(known[relation] for relation in order if relation in known)
