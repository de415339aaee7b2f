"""The network of stream tables by their names: who reads whom and how, components and strata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import networkx as nx

from headrace.graph.components import Component, components, graph_of
from headrace.graph.diamonds import ConsistencyGroup, groups
from headrace.graph.strata import Operators, Unstratifiable, strata, unstratifiable


@dataclass(frozen=True)
class NetworkEdge:
    """One edge: `reader` reads `read`; `operators` make it non-monotone in that, if any do."""

    reader: str
    read: str
    operators: Operators = ()

    @property
    def monotone(self) -> bool:
        return not self.operators

    def __str__(self) -> str:
        how = f" ({', '.join(self.operators)})" if self.operators else ""
        return f"{self.reader} reads {self.read}{how}"


@dataclass(frozen=True)
class Network:
    """Stream tables and what they read; what is read and is no table here is a source.

    `declared` names the groups of tables that a user declared to be of one.
    """

    reads: Mapping[str, Mapping[str, Operators]]
    declared: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[str, ...]:
        """The stream tables, each after those that it reads."""
        return tuple(name for name in self.strata if name in self.reads)

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(name for name in self.strata if name not in self.reads)

    @cached_property
    def edges(self) -> tuple[NetworkEdge, ...]:
        """Every edge, in the order of the readers."""
        return tuple(
            NetworkEdge(reader, read, operators)
            for reader in self.tables
            for read, operators in sorted(self.reads[reader].items())
        )

    @cached_property
    def components(self) -> tuple[Component[str], ...]:
        """The components of stream tables, each after those that it reads."""
        return tuple(
            component for component in components(self.reads) if component.members[0] in self.reads
        )

    @cached_property
    def strata(self) -> Mapping[str, int]:
        """The stratum of every source and stream table."""
        return strata(self.reads)

    @cached_property
    def unstratifiable(self) -> tuple[Unstratifiable[str], ...]:
        return unstratifiable(self.reads)

    @cached_property
    def groups(self) -> tuple[ConsistencyGroup[str], ...]:
        """The groups of more than one stream table, each after those that it reads."""
        return tuple(group for group in groups(self.reads, self.declared) if not group.is_single)

    def group(self, table: str) -> int | None:
        """Return the number of a table's group, from 1 on in their order; None if it is alone."""
        return self._numbers.get(table)

    def group_members(self, table: str) -> tuple[str, ...]:
        """Return the tables of a table's group, with it; none if it is alone."""
        number = self.group(table)
        return () if number is None else tuple(self.groups[number - 1].members)

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {name: n for n, group in enumerate(self.groups, 1) for name in group.members}

    def component(self, table: str) -> Component[str]:
        return next(component for component in self.components if table in component.members)

    def with_tables(self, reads: Mapping[str, Mapping[str, Operators]]) -> Network:
        """Return the network with these stream tables, added or replaced by name."""
        return Network({**self.reads, **reads}, self.declared)

    def below(self, tables: Iterable[str]) -> Network:
        """Return the network of these stream tables and of all that they read, directly or not."""
        graph = graph_of(self.reads)
        names = {name_below for name in tables for name_below in (name, *nx.ancestors(graph, name))}
        reads = {name: reads for name, reads in self.reads.items() if name in names}
        return Network(reads, self.declared)
