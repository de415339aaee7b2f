"""Diamonds: paths that part at one relation and meet again in one stream table. Pure.

    gate(s, t)     the last before t that is on every path from s to t
    between(s, t)  stream tables on paths from gate(s, t) to t, without the two

A stream table t with something between is a convergence. If it is always refreshed together with
that, at one epoch, every source s reaches it at one epoch through all paths: they come from the
gate, which is read as it is published, once. Members of a component are always refreshed
together; here they count as one table.

A user may declare stream tables to be a group, too. Then it is as if one more table read all of
them: whatever source two of them show, they show it as of one epoch.

Gates are immediate dominators, one search for each relation that reads nothing; paths are never
listed, because there can be exponentially many.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import or_
from typing import Generic

import networkx as nx

from headrace.graph.components import Component, Name, components


@dataclass(frozen=True)
class Diamond(Generic[Name]):
    """Where paths meet, the relations that they come from, and the stream tables between.

    `convergence` is one table, or all of a component. All names are in the order of components.
    """

    convergence: tuple[Name, ...]
    shared: tuple[Name, ...]
    intermediates: tuple[Name, ...]


@dataclass(frozen=True)
class ConsistencyGroup(Generic[Name]):
    """Stream tables that have to be published together: merged diamonds, a component, tables that
    were declared to be a group, or one.

    `parts` are its components, each after those that it reads; `convergences` the members in which
    paths meet; `declared` those that were declared. `pieces` are its parts again: those of a piece
    are published together even where diamonds are not.
    """

    parts: tuple[tuple[Name, ...], ...]
    convergences: tuple[Name, ...] = ()
    declared: tuple[Name, ...] = ()
    pieces: tuple[tuple[tuple[Name, ...], ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.pieces:
            object.__setattr__(self, "pieces", tuple((part,) for part in self.parts))

    @property
    def members(self) -> tuple[Name, ...]:
        """Each after those that it reads; tables that read each other side by side."""
        return tuple(name for part in self.parts for name in part)

    @property
    def is_single(self) -> bool:
        """Whether it is one table alone."""
        return len(self.members) == 1


def diamonds(reads: Mapping[Name, Iterable[Name]]) -> tuple[Diamond[Name], ...]:
    """Return every convergence, after those that it reads.

    A name that is read and is no key is a source.
    """
    return _diamonds(reads, ())[0]


def _diamonds(
    reads: Mapping[Name, Iterable[Name]], declared: Iterable[Iterable[Name]]
) -> tuple[tuple[Diamond[Name], ...], tuple[Diamond[Name], ...]]:
    """Return the diamonds, and those that would exist if a table read all declared members."""
    parts = components(reads)
    graph = _condensed(parts, reads)
    number = {name: index for index, part in enumerate(parts) for name in part.members}
    meetings = {len(parts) + index: tuple(names) for index, names in enumerate(declared)}
    for node, names in meetings.items():
        graph.add_edges_from((number[name], node) for name in names)
    gates: dict[int, set[int]] = {node: set() for node in graph}
    for root in [node for node, reading in graph.in_degree() if reading == 0]:
        for node, gate in nx.immediate_dominators(graph, root).items():
            if node != root:
                gates[node].add(gate)
    # Sets of nodes as the bits of a number: most of the work is to intersect them.
    above, below = dict.fromkeys(graph, 0), dict.fromkeys(graph, 0)
    for node in graph:
        for neighbor in graph.predecessors(node):
            above[node] |= above[neighbor] | 1 << neighbor
    for node in reversed(range(len(graph))):
        for neighbor in graph.successors(node):
            below[node] |= below[neighbor] | 1 << neighbor

    def diamonds_of(node: int, convergence: tuple[Name, ...]) -> Iterator[Diamond[Name]]:
        paths = {gate: below[gate] & above[node] for gate in gates[node]}
        between = reduce(or_, paths.values(), 0)
        shared = sum(1 << gate for gate, path in paths.items() if path) & ~between
        if between:
            yield Diamond(convergence, names_of(shared), names_of(between))

    def names_of(nodes: int) -> tuple[Name, ...]:
        members = (part.members for node, part in enumerate(parts) if nodes >> node & 1)
        return tuple(chain.from_iterable(members))

    return (
        tuple(
            diamond
            for node, part in enumerate(parts)
            for diamond in diamonds_of(node, part.members)
        ),
        tuple(diamond for node, names in meetings.items() for diamond in diamonds_of(node, names)),
    )


def groups(
    reads: Mapping[Name, Iterable[Name]], declared: Mapping[Name, str] | None = None
) -> tuple[ConsistencyGroup[Name], ...]:
    """Return every stream table in one group, and each group after those that it reads.

    Diamonds with a table in common are one group, and so is what stands between two members of
    one: it reads one of them and is read by the other. Both follow from letting the intermediates
    read their convergence: groups are the components of that. Tables with the same name in
    `declared` read each other there.
    """
    by_group: dict[str, list[Name]] = {}
    for name, group in (declared or {}).items():
        if name in reads:
            by_group.setdefault(group, []).append(name)
    several = [tuple(names) for names in by_group.values() if len(names) > 1]
    own_diamonds, meeting = _diamonds(reads, several)
    always = {name: set(others) for name, others in reads.items()}
    for names in several:
        for name, next_name in zip(names, names[1:] + names[:1], strict=True):
            always[name].add(next_name)
    together = {name: set(others) for name, others in always.items()}
    for diamond in (*own_diamonds, *meeting):
        for name in diamond.intermediates:
            together[name].update(diamond.convergence)
    joined, number = _numbered(together, reads)
    _, piece = _numbered(always, reads)
    parts: list[list[tuple[Name, ...]]] = [[] for _ in range(joined)]
    pieces: list[dict[int, list[tuple[Name, ...]]]] = [{} for _ in range(joined)]
    for part in components(reads):
        first = part.members[0]
        if first in reads:
            parts[number[first]].append(part.members)
            pieces[number[first]].setdefault(piece[first], []).append(part.members)
    convergences: list[list[Name]] = [[] for _ in range(joined)]
    for diamond in own_diamonds:
        convergences[number[diamond.convergence[0]]] += diamond.convergence
    chosen = frozenset(chain.from_iterable(several))
    return tuple(
        ConsistencyGroup(
            tuple(parts[index]),
            tuple(convergences[index]),
            tuple(name for part in parts[index] for name in part if name in chosen),
            tuple(tuple(own) for _, own in sorted(pieces[index].items())),
        )
        for index in range(joined)
    )


def _numbered(
    reads: Mapping[Name, Iterable[Name]], tables: Container[Name]
) -> tuple[int, dict[Name, int]]:
    """Return the number of components of these tables, and the component's number of each table."""
    member_sets = [
        component.members for component in components(reads) if component.members[0] in tables
    ]
    return len(member_sets), {
        name: index for index, names in enumerate(member_sets) for name in names
    }


def _condensed(
    parts: tuple[Component[Name], ...], reads: Mapping[Name, Iterable[Name]]
) -> nx.DiGraph[int]:
    """Return the components by number, in order, with edges from those that each reads."""
    number = {name: index for index, part in enumerate(parts) for name in part.members}
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(parts)))
    edges = (
        (number[input_name], number[name])
        for name, inputs in reads.items()
        for input_name in inputs
    )
    graph.add_edges_from((read, reader) for read, reader in edges if read != reader)
    return graph
