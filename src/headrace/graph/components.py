"""Components: names that read each other, directly or not; and the cycles among them. Pure.

Condensed to one node each, they form no cycle: components have an order in which each comes after
all that it reads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, Generic, TypeVar

import networkx as nx

from headrace.catalog.records import StreamTable

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Component(Generic[Name]):
    """Names that read each other, in their order, or one name alone.

    `id` numbers those that read themselves: 1, 2, … in the order of the components; None is one
    name that does not.
    """

    members: tuple[Name, ...]
    id: int | None = None

    @property
    def is_cyclic(self) -> bool:
        return self.id is not None


def components(reads: Mapping[Name, Iterable[Name]]) -> tuple[Component[Name], ...]:
    """Return all names, also those that are only read, each component after those that it reads.

    Among equals the order is that of their first members' names, so it is always the same.
    """
    graph = graph_of(reads)
    condensed = nx.condensation(graph)
    members = {node: tuple(sorted(names)) for node, names in condensed.nodes(data="members")}
    ordered_components: list[Component[Name]] = []
    number = 0
    for node in nx.lexicographical_topological_sort(condensed, key=lambda node: members[node]):
        first = members[node][0]
        cyclic = len(members[node]) > 1 or graph.has_edge(first, first)
        number += cyclic
        ordered_components.append(Component(members[node], number if cyclic else None))
    return tuple(ordered_components)


def graph_of(reads: Mapping[Name, Iterable[Name]]) -> nx.DiGraph[Name]:
    """Return the graph with an edge from each name to every name that reads it."""
    graph: nx.DiGraph[Name] = nx.DiGraph()
    for name, inputs in reads.items():
        graph.add_node(name)
        graph.add_edges_from((input_name, name) for input_name in inputs)
    return graph


class Cycle(Exception):
    """Names in a cycle: each is read by the next, the last by the first."""

    def __init__(self, names: tuple[Any, ...]) -> None:
        super().__init__(" → ".join(map(str, (*names, *names[:1]))))
        self.names = names


def find_cycle(reads: Mapping[Name, Iterable[Name]]) -> Cycle | None:
    """Return a shortest cycle in the first component that reads itself; None if there is none."""
    graph = graph_of(reads)
    for component in components(reads):
        if component.is_cyclic:
            return Cycle(shortest_cycle(graph.subgraph(component.members), component.members[0]))
    return None


def shortest_cycle(
    graph: nx.DiGraph[Name], name: Name, last: Name | None = None
) -> tuple[Name, ...]:
    """Return a shortest path from a name, each read by the next, to a name that it reads.

    That name is `last`, or the nearest.
    """
    lasts = sorted(graph.predecessors(name)) if last is None else [last]
    cycles_found = [tuple(nx.shortest_path(graph, name, end)) for end in lasts]
    return min(cycles_found, key=len)


Reads = tuple[tuple[str, tuple[str, ...]], ...]
Group = tuple[StreamTable, ...]
"""One stream table, or all of a cycle."""


def cycles(tables: Iterable[StreamTable]) -> dict[str, frozenset[str]]:
    """Return, by the relation of each stream table in a cycle, all relations of that cycle."""
    return _cycles(tuple((table.relation, table.inputs) for table in tables))


@lru_cache(maxsize=64)
def _cycles(reads: Reads) -> dict[str, frozenset[str]]:
    member_sets = (
        component.members for component in components(dict(reads)) if component.is_cyclic
    )
    return {name: frozenset(members) for members in member_sets for name in members}


def grouped(ordered: Sequence[StreamTable], tables: Iterable[StreamTable]) -> tuple[Group, ...]:
    """Return tables in their order, those of a cycle together; `tables` are all that exist."""
    cycle_by_relation = cycles(tables)
    alone = {table.relation: frozenset({table.relation}) for table in ordered}
    groups = groupby(
        ordered, lambda table: cycle_by_relation.get(table.relation, alone[table.relation])
    )
    return tuple(tuple(group) for _, group in groups)
