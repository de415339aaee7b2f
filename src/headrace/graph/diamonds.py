"""Diamonds: ways that part at one relation and meet again in one stream table. Pure.

    gate(s, t)     the last before t that is on every way from s to t
    between(s, t)  stream tables on ways from gate(s, t) to t, without the two

A stream table t with something between is a convergence. If it is always refreshed together with
that, at one epoch, every source s reaches it at one epoch through all ways: they come from the
gate, which is read as it is published, once. Members of a component are always refreshed
together; here they count as one table.

Gates are immediate dominators, one search for each relation that reads nothing; ways are never
listed, because there can be exponentially many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import or_
from typing import Generic

import networkx as nx

from headrace.graph.components import Component, Name, components


@dataclass(frozen=True)
class Diamond(Generic[Name]):
    """Where ways meet, the relations that they come from, and the stream tables between.

    `convergence` is one table, or all of a component. All names are in the order of components.
    """

    convergence: tuple[Name, ...]
    shared: tuple[Name, ...]
    intermediates: tuple[Name, ...]


@dataclass(frozen=True)
class ConsistencyGroup(Generic[Name]):
    """Stream tables that have to be published together: merged diamonds, a component, or one.

    `parts` are its components, each after those that it reads; `convergences` the members in which
    ways meet.
    """

    parts: tuple[tuple[Name, ...], ...]
    convergences: tuple[Name, ...] = ()

    @property
    def members(self) -> tuple[Name, ...]:
        """Each after those that it reads; tables that read each other side by side."""
        return tuple(name for part in self.parts for name in part)

    @property
    def is_single(self) -> bool:
        """Whether it is one table alone."""
        return len(self.members) == 1


def diamonds(reads: Mapping[Name, Iterable[Name]]) -> tuple[Diamond[Name], ...]:
    """Every convergence, after those that it reads; what is read and is no key is a source."""
    parts = components(reads)
    graph = _condensed(parts, reads)
    gates: dict[int, set[int]] = {node: set() for node in graph}
    for root in [node for node, reading in graph.in_degree() if reading == 0]:
        for node, gate in nx.immediate_dominators(graph, root).items():
            if node != root:
                gates[node].add(gate)
    # Sets of nodes as the bits of a number: most of the work is to intersect them.
    above, below = dict.fromkeys(graph, 0), dict.fromkeys(graph, 0)
    for node in graph:
        for other in graph.predecessors(node):
            above[node] |= above[other] | 1 << other
    for node in reversed(range(len(parts))):
        for other in graph.successors(node):
            below[node] |= below[other] | 1 << other

    def names(nodes: int) -> tuple[Name, ...]:
        members = (part.members for node, part in enumerate(parts) if nodes >> node & 1)
        return tuple(chain.from_iterable(members))

    found = []
    for node in graph:
        ways = {gate: below[gate] & above[node] for gate in gates[node]}
        between = reduce(or_, ways.values(), 0)
        shared = sum(1 << gate for gate, way in ways.items() if way) & ~between
        if between:
            found.append(Diamond(parts[node].members, names(shared), names(between)))
    return tuple(found)


def groups(reads: Mapping[Name, Iterable[Name]]) -> tuple[ConsistencyGroup[Name], ...]:
    """Every stream table in one group, and each group after those that it reads.

    Diamonds with a table in common are one group, and so is what stands between two members of
    one: it reads one of them and is read by the other. Both follow from letting the intermediates
    read their convergence: groups are the components of that.
    """
    found = diamonds(reads)
    together = {name: set(others) for name, others in reads.items()}
    for diamond in found:
        for name in diamond.intermediates:
            together[name].update(diamond.convergence)
    joined = [group.members for group in components(together) if group.members[0] in reads]
    number = {name: index for index, members in enumerate(joined) for name in members}
    parts: list[list[tuple[Name, ...]]] = [[] for _ in joined]
    for part in components(reads):
        if part.members[0] in reads:
            parts[number[part.members[0]]].append(part.members)
    meeting: list[list[Name]] = [[] for _ in joined]
    for diamond in found:
        meeting[number[diamond.convergence[0]]] += diamond.convergence
    return tuple(
        ConsistencyGroup(tuple(inside), tuple(meet))
        for inside, meet in zip(parts, meeting, strict=True)
    )


def _condensed(
    parts: tuple[Component[Name], ...], reads: Mapping[Name, Iterable[Name]]
) -> nx.DiGraph[int]:
    """The components by their numbers in their order, with edges from those that each reads."""
    number = {name: index for index, part in enumerate(parts) for name in part.members}
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(parts)))
    edges = ((number[other], number[name]) for name, others in reads.items() for other in others)
    graph.add_edges_from((read, reader) for read, reader in edges if read != reader)
    return graph
