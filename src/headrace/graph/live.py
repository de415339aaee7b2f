"""The graph of stream tables, maintained as tables are added and removed. Pure.

A change examines the tables that changed, all downstream of them, all upstream of these, and whole
groups: that part is closed, so its results are the same as among all tables. A change costs what
`components`, `strata` and `groups` cost on that part. Tables that only read the same source or
stream table as a changed one are not examined. Reading the whole (`order`, `groups`) sorts it, once
after each change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import chain

from headrace.catalog.records import StreamTable
from headrace.graph.components import Component, components
from headrace.graph.diamonds import ConsistencyGroup, groups
from headrace.graph.policy import declared_groups
from headrace.graph.strata import Operators, strata

Edges = Mapping[str, Operators]


@dataclass(frozen=True)
class GraphPosition:
    """Where a stream table stands."""

    component: tuple[str, ...]
    stratum: int
    group: ConsistencyGroup[str]


class LiveGraph:
    """The graph of stream tables by relation ids, with order, components, strata and groups.

    A name that is read and was not put in is a source. Every change returns how many tables it
    examined.
    """

    def __init__(self) -> None:
        self._reads: dict[str, Edges] = {}
        self._readers: dict[str, set[str]] = {}
        self._declared: dict[str, str] = {}
        self._places: dict[str, GraphPosition] = {}
        self._groups: tuple[ConsistencyGroup[str], ...] | None = ()

    def put(self, table: str, inputs: Iterable[str], edges: Edges, group: str | None = None) -> int:
        """Add or replace a table; `group` is the group that it was declared to be of.

        The table counts as not monotone in inputs that `edges` does not have.
        """
        return self._change({table: (_edges(inputs, edges), group)}, ())

    def remove(self, table: str) -> int:
        """Remove a table; to tables that still read it, it is a source."""
        return self._change({}, (table,))

    def follow(self, tables: Iterable[StreamTable]) -> int:
        """Update the graph to these tables, whatever has changed since the last update."""
        stream_tables = tuple(tables)
        declared = declared_groups(table for table in stream_tables if not table.is_uninitialized)
        entries = {
            table.relation: (
                _edges(grouping_inputs(table), table.edges),
                declared.get(table.relation),
            )
            for table in stream_tables
        }
        changed_entries = {
            name: entry
            for name, entry in entries.items()
            if (self._reads.get(name), self._declared.get(name)) != entry
        }
        return self._change(changed_entries, self._reads.keys() - entries.keys())

    @property
    def groups(self) -> tuple[ConsistencyGroup[str], ...]:
        """All groups, each after those that it reads."""
        if self._groups is None:
            self._groups = self._sorted()
        return self._groups

    @property
    def order(self) -> tuple[str, ...]:
        """All tables, each after those that it reads; groups and components side by side."""
        return tuple(chain.from_iterable(group.members for group in self.groups))

    @property
    def components(self) -> tuple[Component[str], ...]:
        """The components of stream tables in their order, those that read themselves numbered."""
        numbered_components: list[Component[str]] = []
        number = 0
        for part in chain.from_iterable(group.parts for group in self.groups):
            cyclic = len(part) > 1 or part[0] in self._reads[part[0]]
            number += cyclic
            numbered_components.append(Component(part, number if cyclic else None))
        return tuple(numbered_components)

    @property
    def strata(self) -> Mapping[str, int]:
        """The strata of the stream tables, in their order."""
        return {name: self._places[name].stratum for name in self.order}

    def place(self, table: str) -> GraphPosition:
        return self._places[table]

    def readers(self, relation: str) -> Set[str]:
        """Return the stream tables that read a source or a stream table themselves."""
        return self._readers.get(relation, frozenset())

    def _change(self, given: Mapping[str, tuple[Edges, str | None]], gone: Collection[str]) -> int:
        changed = {*given, *gone}
        region = self._region(changed)
        for name in changed:
            self._write(name, *given.get(name, (None, None)))
        # Tables that the old graph has in a group are examined by the new one, too.
        region = (region | self._region(changed)) & self._reads.keys()
        self._place(region)
        for name in gone:
            self._places.pop(name, None)
        if changed:
            self._groups = None
        return len(region)

    def _region(self, changed: Iterable[str]) -> set[str]:
        """Return the changed and all downstream, closed under the inputs of tables and groups."""
        declared: dict[str, set[str]] = {}
        for name, group in self._declared.items():
            declared.setdefault(group, set()).add(name)
        region: set[str] = set()
        waiting = list(changed)
        while waiting:
            name = waiting.pop()
            if name not in region:
                region.add(name)
                waiting += self._readers.get(name, ())
        waiting = list(region)
        while waiting:
            name = waiting.pop()
            place = self._places.get(name)
            mates = {*(() if place is None else place.group.members)}
            mates |= declared.get(self._declared.get(name, ""), set())
            near = {*self._reads.get(name, ()), *mates} & (self._reads.keys() | self._places.keys())
            waiting += near - region
            region |= near
        return region

    def _write(self, name: str, reads: Edges | None, group: str | None) -> None:
        """Set the inputs and the declared group of a table; with None, remove it."""
        self._declared.pop(name, None)
        if group is not None:
            self._declared[name] = group
        for input_name in self._reads.pop(name, {}):
            self._readers[input_name].discard(name)
            if not self._readers[input_name]:
                del self._readers[input_name]
        if reads is not None:
            self._reads[name] = reads
            for input_name in reads:
                self._readers.setdefault(input_name, set()).add(name)

    def _place(self, region: Set[str]) -> None:
        """Compute the positions of a closed set of tables, from scratch."""
        reads = {name: self._reads[name] for name in region}
        strata_by_name = strata(reads)
        parts = {
            name: component.members for component in components(reads) for name in component.members
        }
        for group in groups(reads, self._declared):
            for name in group.members:
                self._places[name] = GraphPosition(parts[name], strata_by_name[name], group)

    def _sorted(self) -> tuple[ConsistencyGroup[str], ...]:
        """Return the groups, sorted by the number of groups on the longest path to each.

        A group that grows moves everything that reads any of its members, so no change of a part
        keeps these numbers.
        """
        own = {place.group.members: place.group for place in self._places.values()}
        below = {
            members: {
                self._places[read].group.members
                for name in members
                for read in self._reads[name]
                if read in self._places
            }
            - {members}
            for members in own
        }
        depths: dict[tuple[str, ...], int] = {}
        for members in TopologicalSorter(below).static_order():
            depths[members] = 1 + max((depths[lower] for lower in below[members]), default=-1)
        return tuple(
            own[members] for members in sorted(own, key=lambda members: (depths[members], members))
        )


def grouping_inputs(table: StreamTable) -> tuple[str, ...]:
    """Return the inputs that a table can be in a group with: none while it has no rows.

    A table without rows yet keeps no other table waiting.
    """
    return () if table.is_uninitialized else table.inputs


def _edges(inputs: Iterable[str], edges: Edges) -> Edges:
    return {relation: edges.get(relation, ("unknown",)) for relation in inputs}
