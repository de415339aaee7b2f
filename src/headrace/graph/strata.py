"""Strata: layers of stream tables, each complete before a table not monotone in it begins. Pure.

    stratum(t) = max over what t reads of  stratum(r)      where t is monotone in r
                                           stratum(r) + 1  where it is not

Sources are in stratum 0, and so is a table that is monotone in sources alone. Members of a
component share their stratum. A component that is not monotone in one of its own members has no
least fixed point: it is unstratifiable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic

from headrace.catalog.records import StreamTable
from headrace.graph.components import Name, components, graph_of, shortest_cycle

Operators = tuple[str, ...]
Reads = Mapping[Name, Mapping[Name, Operators]]
"""For each stream table what it reads, with the operators that make it non-monotone in that."""


@dataclass(frozen=True)
class Unstratifiable(Generic[Name]):
    """A table that is not monotone in another of its component: `reader` reads `read`.

    `path` is the whole cycle, each read by the next: it begins with the reader, and the reader
    reads its last.
    """

    reader: Name
    read: Name
    operators: Operators
    path: tuple[Name, ...]


def strata(reads: Reads[Name]) -> dict[Name, int]:
    """Return the lowest strata that are possible, of the names in the order of their components.

    Edges that make a component unstratifiable count nothing.
    """
    stratum_by_name: dict[Name, int] = {}
    for component in components(reads):
        inside = frozenset(component.members)
        below = (
            stratum_by_name[input_name] + bool(operators)
            for member in component.members
            for input_name, operators in reads.get(member, {}).items()
            if input_name not in inside
        )
        stratum = max(below, default=0)
        stratum_by_name.update(dict.fromkeys(component.members, stratum))
    return stratum_by_name


def unstratifiable(reads: Reads[Name]) -> tuple[Unstratifiable[Name], ...]:
    """Return every edge inside a component that is not monotone, with a shortest cycle."""
    graph = graph_of(reads)
    return tuple(
        Unstratifiable(
            member,
            input_name,
            operators,
            shortest_cycle(graph.subgraph(component.members), member, input_name),
        )
        for component in components(reads)
        for member in component.members
        for input_name, operators in sorted(reads.get(member, {}).items())
        if input_name in component.members and operators
    )


def by_stratum(ordered: Sequence[StreamTable]) -> tuple[tuple[StreamTable, ...], ...]:
    """Return tables, given each after those it reads, by their strata from the lowest on.

    A table whose edges are not known counts as not monotone in all of its inputs.
    """
    relations = {table.relation for table in ordered}
    stratum_by_relation = strata(
        {
            table.relation: {
                input_relation: table.edges.get(input_relation, ("unknown",))
                for input_relation in table.inputs
                if input_relation in relations
            }
            for table in ordered
        }
    )
    layered = sorted(ordered, key=lambda table: stratum_by_relation[table.relation])
    groups = groupby(layered, lambda table: stratum_by_relation[table.relation])
    return tuple(tuple(group) for _, group in groups)
