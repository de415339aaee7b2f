"""The graph of stream tables, kept as tables come and go. Pure.

A change looks at the tables that changed, at all downstream of them, at what these rest on, and at
whole groups: that part is closed, so what is found in it alone is what would be found among all.
It costs what `components`, `strata` and `groups` cost on that part. Tables that only read the same
source or stream table as a changed one are not looked at. A look at the whole (`order`, `groups`)
sorts it, once after each change.
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
    """Who reads whom, by relation ids, with order, components, strata and groups.

    What is read and was not put in is a source. Every change says how many tables it looked at.
    """

    def __init__(self) -> None:
        self._reads: dict[str, Edges] = {}
        self._readers: dict[str, set[str]] = {}
        self._declared: dict[str, str] = {}
        self._places: dict[str, GraphPosition] = {}
        self._groups: tuple[ConsistencyGroup[str], ...] | None = ()

    def put(self, table: str, inputs: Iterable[str], edges: Edges, group: str | None = None) -> int:
        """Add a table, or replace the one that is there; `group` is what it was declared to be of.

        It is taken as not monotone in inputs that `edges` does not have.
        """
        return self._change({table: (_edges(inputs, edges), group)}, ())

    def remove(self, table: str) -> int:
        """Take a table out; to those that still read it, it is a source."""
        return self._change({}, (table,))

    def follow(self, tables: Iterable[StreamTable]) -> int:
        """Be the graph of these tables, whatever has changed since the last look."""
        known = tuple(tables)
        declared = declared_groups(one for one in known if not one.is_uninitialized)
        wanted = {
            table.relation: (_edges(moves_with(table), table.edges), declared.get(table.relation))
            for table in known
        }
        other = {
            name: one
            for name, one in wanted.items()
            if (self._reads.get(name), self._declared.get(name)) != one
        }
        return self._change(other, self._reads.keys() - wanted.keys())

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
        found: list[Component[str]] = []
        number = 0
        for part in chain.from_iterable(group.parts for group in self.groups):
            cyclic = len(part) > 1 or part[0] in self._reads[part[0]]
            number += cyclic
            found.append(Component(part, number if cyclic else None))
        return tuple(found)

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
        # What is in a group by the old graph has to be looked at by the new one.
        region = (region | self._region(changed)) & self._reads.keys()
        self._place(region)
        for name in gone:
            self._places.pop(name, None)
        if changed:
            self._groups = None
        return len(region)

    def _region(self, changed: Iterable[str]) -> set[str]:
        """Return the changed and all downstream, closed under what tables read and under groups."""
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
        """Give a table what it reads and the group it was declared to be of; None takes it out."""
        self._declared.pop(name, None)
        if group is not None:
            self._declared[name] = group
        for one in self._reads.pop(name, {}):
            self._readers[one].discard(name)
            if not self._readers[one]:
                del self._readers[one]
        if reads is not None:
            self._reads[name] = reads
            for one in reads:
                self._readers.setdefault(one, set()).add(name)

    def _place(self, region: Set[str]) -> None:
        """Find the places of a closed set of tables, from scratch."""
        reads = {name: self._reads[name] for name in region}
        found = strata(reads)
        parts = {name: one.members for one in components(reads) for name in one.members}
        for group in groups(reads, self._declared):
            for name in group.members:
                self._places[name] = GraphPosition(parts[name], found[name], group)

    def _sorted(self) -> tuple[ConsistencyGroup[str], ...]:
        """Sort the groups by the number of groups on the longest way to each.

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
            depths[members] = 1 + max((depths[one] for one in below[members]), default=-1)
        return tuple(own[members] for members in sorted(own, key=lambda one: (depths[one], one)))


def moves_with(table: StreamTable) -> tuple[str, ...]:
    """Return the inputs that a table can be in a group with.

    An input without rows yet keeps no table waiting.
    """
    return () if table.is_uninitialized else table.inputs


def _edges(inputs: Iterable[str], edges: Edges) -> Edges:
    return {one: edges.get(one, ("unknown",)) for one in inputs}
