"""The network that queries would make with the stream tables that exist: nothing is written.

Tables that read each other begin with the columns that a part of their queries has alone. Unlike
where they are made, a cycle without a fixed point is part of the result and no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from headrace.catalog import State
from headrace.engine import Engine
from headrace.graph.network import Network
from headrace.graph.strata import Operators
from headrace.lifecycle.cycle_check import no_beginning
from headrace.lifecycle.cycle_members import Name, shown
from headrace.lifecycle.name_resolver import NameResolver
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.planned_table import (
    PlannedTable,
    RecaptureNeeded,
    TableRequest,
    check,
    check_free,
)
from headrace.lifecycle.planning import PlanBuilder
from headrace.lifecycle.table_spec import read_tables
from headrace.observe.strata_status import names_of, network_of
from headrace.query import first_names
from headrace.source.faults import translated
from headrace.statements.nonrecursive_term import beginning, first_branch


def stratify(engine: Engine, state: State, requests: Sequence[TableRequest]) -> Network:
    """Return the network with these tables, which are new or replace those with their names."""
    search_path = engine.database.search_path
    named = {parse_name(request.name, search_path[0]): request for request in requests}
    recaptured: set[str] = set()
    while True:
        try:
            with (
                translated(),
                engine.database.session() as connection,
                connection.transaction(force_rollback=True),
            ):
                planning = PlanBuilder(
                    NameResolver.of(engine, connection, state), state, search_path
                )
                planning.recapture(
                    [source for source in state.sources if source.relation in recaptured]
                )
                reads = _Rehearsal(planning, named).reads()
                return network_of(state).with_tables(reads)
        except RecaptureNeeded as needed:
            recaptured.add(needed.relation)


@dataclass(frozen=True)
class _Rehearsal:
    """Creates tables, as far as their columns go, in a transaction that is rolled back.

    `waiting` have no columns yet.
    """

    planning: PlanBuilder
    requests: dict[Name, TableRequest]
    waiting: set[Name] = field(default_factory=set)

    def reads(self) -> dict[str, dict[str, Operators]]:
        """Return how each requested table depends on the tables that it reads."""
        state = self.planning.state
        for name in self.requests:
            if state.stream_table(*name) is None:
                check_free(self.planning.resolver.home, state, *name)
                self.waiting.add(name)
        left = dict(self.requests)
        edges_by_table: dict[str, dict[str, Operators]] = {}
        while left:
            ready = [
                candidate for candidate, request in left.items() if not self._waits(request.query)
            ]
            for name in ready:
                making = self._checked(name, left.pop(name))
                edges_by_table[shown(name)] = self._edges(making)
                self._rehearse(name, making)
            if not ready:
                self._begin(left)
        return edges_by_table

    def _waits(self, query: str) -> bool:
        """Return whether a query reads a table that has no columns yet."""
        planning = self.planning
        tables = {(table.schema, table.name) for table in planning.state.stream_tables}
        names = tables | self.requests.keys()
        read = read_tables(planning.resolver.home, query, planning.search_path, names)
        return not read.isdisjoint(self.waiting)

    def _begin(self, left: dict[Name, TableRequest]) -> None:
        """Give one of the tables the columns that a part of its query has."""
        for name in sorted(self.waiting):
            query = left[name].query
            begun = beginning(query, self._waits)
            if begun is not None:
                making = self._checked(name, replace(left[name], query=begun))
                table = making.table
                names = first_names(first_branch(query)) or [c.name for c in table.columns]
                pairs = zip(table.columns, names, strict=True)
                columns = tuple(replace(column, name=name) for column, name in pairs)
                table = replace(table, columns=columns, key=())
                self._rehearse(name, replace(making, table=table))
                return
        raise no_beginning(sorted(self.waiting))

    def _checked(self, name: Name, request: TableRequest) -> PlannedTable:
        planning = self.planning
        old = planning.state.stream_table(*name)
        return check(planning.resolver, planning.state, request, planning.search_path, old=old)

    def _edges(self, making: PlannedTable) -> dict[str, Operators]:
        names = names_of(self.planning.state.with_origins(making.sources))
        return {names[relation]: words for relation, words in making.table.edges.items()}

    def _rehearse(self, name: Name, making: PlannedTable) -> None:
        self.planning.add(making)
        self.planning.rehearse(making)
        self.waiting.discard(name)
