"""Queries about an open project: status, history, plans. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from headrace.boundary.arguments import whole_number
from headrace.boundary.entry_points import entry_points
from headrace.catalog import State, new_relation_id
from headrace.catalog.records import (
    Receipt,
    RefreshMode,
    Source,
    Status,
    StreamTable,
    TierInForce,
)
from headrace.engine import Engine
from headrace.errors import NeedsReinit, UserError
from headrace.graph.components import Group, cycles
from headrace.graph.draw import FORMATS
from headrace.graph.network import Network
from headrace.ingest.append_only import growing, is_declared, reverted
from headrace.lifecycle.capture_requirements import capture_sql, option_notices
from headrace.lifecycle.create import check_query, filled_with
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.planned_table import TableRequest
from headrace.observe.blockers import blockers
from headrace.observe.capture_status import captures, is_decoded
from headrace.observe.cdc_status import SourceHealth, cdc_health
from headrace.observe.database_status import DatabaseStatus, database_statuses
from headrace.observe.group_status import GroupMember, groups_of
from headrace.observe.history import NamedRefresh, with_names
from headrace.observe.lag import availability, lags
from headrace.observe.pinned import Changes, PinnedTables
from headrace.observe.strata_status import (
    ComponentStatus,
    StrataExplanation,
    StratumStatus,
    components_of,
    explain_network,
    names_of,
    network_of,
    strata_of,
)
from headrace.observe.stratify import stratify
from headrace.observe.table_status import TableStatus, status_of
from headrace.refresh.change_size import read_by, stored_rows
from headrace.refresh.cost_history import Outlook, outlook, past_of
from headrace.refresh.explain import Explanation, explain, found_by_keys, placed
from headrace.refresh.plan import may_choose
from headrace.refresh.refresh import require_table
from headrace.refresh.scope import consistency_groups
from headrace.relations.definition import define
from headrace.relations.fingerprint import definition_fingerprint
from headrace.schedule.tiers import is_watched, tier_option
from headrace.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@entry_points
class ProjectReader:
    """The part of `Headrace` that only reads."""

    _engine: Engine

    def table(self, name: str) -> DataFrame:
        """Return the stream table at its published epoch, as a Spark DataFrame."""
        return self.at().table(name)

    def at(self, epoch: int | None = None) -> PinnedTables:
        """Return all stream tables as they are published now, or last were up to an epoch."""

        def statuses(state: State) -> tuple[TableStatus, ...]:
            return self._statuses(state.stream_tables, state)

        return PinnedTables(self._engine, self._state(), epoch, statuses)

    def changes(self, name: str, after: int = 0) -> Changes:
        """Return the changes of a stream table after an epoch, and the epoch for the next call.

        The frame has the netted rows with their `_weight`; after 0 it has all rows of the table.
        """
        return self.at().changes(name, after)

    def status(self) -> tuple[TableStatus, ...]:
        """Return the status of every stream table."""
        return self._statuses(self._state().stream_tables)

    def history(self, name: str | None = None, limit: int = 100) -> tuple[NamedRefresh, ...]:
        """Return the latest refreshes of one stream table or of all, newest first."""
        whole_number("limit", limit)
        state = self._state()
        relation = None
        if name is not None:
            relation = require_table(state, *self._name(name)).relation
        return with_names(state, self._engine.catalog.refreshes(relation, limit))

    def receipts(
        self, name: str | None = None, limit: int | None = 100, *, current: bool = False
    ) -> tuple[Receipt, ...]:
        """Return the latest receipts of `verify`, of one stream table or of all, newest first.

        Without a limit, return all that are kept. With `current`, return only those that were made
        for the present definitions: none from before a table, or one that it reads, was altered or
        rebuilt.
        """
        if limit is not None:
            whole_number("limit", limit)
        state, relation = self._state(), None
        if name is not None:
            relation = require_table(state, *self._name(name)).relation
        receipts = self._engine.catalog.receipts(relation, limit)
        if not current:
            return receipts
        tables = {table.relation: table for table in state.stream_tables}
        definitions = {
            relation: definition_fingerprint(state, tables[relation])
            for relation in {receipt.table for receipt in receipts} & tables.keys()
        }
        return tuple(
            receipt
            for receipt in receipts
            if receipt.definition is not None
            and receipt.definition == definitions.get(receipt.table)
        )

    def stratum_status(self) -> tuple[StratumStatus, ...]:
        """Return the strata: layers of stream tables, the lowest first."""
        return strata_of(network_of(self._state()), self._engine.catalog.strata_ticks())

    def scc_status(self) -> tuple[ComponentStatus, ...]:
        """Return the components: stream tables that read each other, or themselves."""
        state = self._state()
        return self._components(state, network_of(state))

    def databases(self) -> tuple[DatabaseStatus, ...]:
        """Return the databases whose tables queries can read, and what is captured of them."""
        return database_statuses(self._state())

    def check_cdc_health(self) -> tuple[SourceHealth, ...]:
        """Return the health of every source: its mode of capture, its lag, and what is wrong."""
        return cdc_health(self._engine, self._state(), datetime.now(UTC))

    def cdc_sql(self, *tables: str) -> str:
        """Return the SQL that capture of tables lacks, for a DBA to run where our roles may not.

        Tables are named as in a query; without names, the SQL is for all sources.
        """
        return capture_sql(self._engine, self._state(), tables)

    def diamond_groups(self) -> tuple[GroupMember, ...]:
        """Return the groups of several stream tables: those on paths from one source to a table in
        which the paths meet, and those that read each other."""
        state = self._state()
        names = names_of(state)
        tables = {names[table.relation]: table for table in state.stream_tables}
        return groups_of(network_of(state), tables, self._engine.settings(state))

    def explain_strata(
        self, tables: Sequence[str] | Mapping[str, str | Mapping[str, Any]]
    ) -> StrataExplanation:
        """Return the strata of stream tables that exist, by name, or of queries in the form of
        `create_stream_tables`, before anything is created; with all that they rest on.

        A cycle that cannot be made is part of the result and no error.
        """
        state = self._state()
        if isinstance(tables, Mapping):
            requests = [TableRequest.read(name, definition) for name, definition in tables.items()]
            network = stratify(self._engine, state, requests)
        else:
            network = network_of(state)
            for name in tables:
                require_table(state, *self._name(name))
        return explain_network(network.below(".".join(self._name(name)) for name in tables))

    def graph(self, format: str = "text") -> str:  # noqa: A002
        """Return sources, stream tables, components and strata as "text", "mermaid" or "dot"."""
        if format not in FORMATS:
            raise UserError(
                "invalid-option",
                f"{format!r} is no format of a graph",
                hint=f"There are {', '.join(FORMATS)}.",
            )
        return FORMATS[format](network_of(self._state()))

    def explain(self, name: str | None = None, *, query: str | None = None) -> Explanation:
        """Return plan and steps of a stream table, or of a query before anything is created."""
        state = self._state()
        if (name is None) == (query is None):
            raise UserError("invalid-option", "explain takes either a name or a query")
        follow = self._engine.settings(state).stratified_dred
        if query is not None:
            unused = f"explained_{new_relation_id()}"
            checked = check_query(self._engine, state, TableRequest(unused, query))
            names = {s.relation: f"{s.schema}.{s.name}" for s in checked.inputs}
            names[checked.table.relation] = "the query"
            reads = {
                names[relation]: operators for relation, operators in checked.table.edges.items()
            }
            network = network_of(state).with_tables({unused: reads})
            explained = explain(
                (checked.table,),
                (checked.definition,),
                names,
                checked.notices,
                follow=follow,
                growing=growing(state),
            )
            return placed(explained, network, unused)
        assert name is not None
        table = require_table(state, *self._name(name))
        if table.is_uninitialized:
            return self._first_explained(state, table, follow=follow)
        names = names_of(state)
        cycle = cycles(state.stream_tables).get(table.relation, frozenset())
        others = (t for t in state.stream_tables if t.relation in cycle - {table.relation})
        group = (table, *others)
        definitions = tuple(define(member, state) for member in group)
        notices = tuple(
            f"{state.called(source)}: {reverted(source)}"
            for source in state.sources
            if source.relation in table.inputs
            and source.shrunk_at is not None
            and is_declared(state, source)
        )
        notices += option_notices(state, table)
        explained = explain(
            group, definitions, names, notices, follow=follow, growing=growing(state)
        )
        refreshes = self._engine.catalog.refreshes(table.relation)
        lookups = found_by_keys(refreshes, names)
        explained = replace(explained, outlook=self._outlook(state, group), found=lookups)
        return placed(explained, network_of(state), names[table.relation])

    def _first_explained(self, state: State, table: StreamTable, *, follow: bool) -> Explanation:
        """Return the steps of a table that was never filled, as if it were filled now."""
        makings = filled_with(self._engine, state, table)
        names = names_of(state)
        for making in makings:
            names |= {origin.relation: state.called(origin) for origin in making.inputs}
            names[making.table.relation] = state.called(making.table)
        reads = {
            names[making.table.relation]: {
                names[relation]: operators for relation, operators in making.table.edges.items()
            }
            for making in makings
        }
        own = makings[0]
        group = [
            member for member in makings if member is own or member.table.relation in own.cycle
        ]
        explained = explain(
            tuple(making.table for making in group),
            tuple(making.definition for making in group),
            names,
            own.notices,
            follow=follow,
            growing=growing(state),
        )
        return placed(explained, network_of(state).with_tables(reads), state.called(table))

    def _outlook(self, state: State, group: Group) -> Outlook | None:
        """Return how refreshes of the first table are chosen; None if a log is damaged."""
        mode = group[0].refresh_mode
        if mode is RefreshMode.AUTO and not may_choose(group, None):
            mode = RefreshMode.DIFFERENTIAL
        inputs = read_by(group)
        try:
            stored = stored_rows(self._engine, state, inputs)
        except NeedsReinit:
            return None
        return outlook(mode, inputs, stored, past_of(self._engine.catalog, group[0].relation))

    def settings(self) -> Mapping[str, Any]:
        """Return the settings in force."""
        return Settings.of(dict(self._state().settings)).model_dump()

    def _components(self, state: State, network: Network) -> tuple[ComponentStatus, ...]:
        """Return the components, with the latest refreshes of their members."""
        cyclic = {
            name
            for component in network.components
            if component.is_cyclic
            for name in component.members
        }
        names = names_of(state) if cyclic else {}
        refreshes = (
            (names[table.relation], refresh)
            for table in state.stream_tables
            if names.get(table.relation) in cyclic
            for refresh in self._engine.catalog.refreshes(table.relation)
        )
        return components_of(network, refreshes)

    def _statuses(
        self, tables: Iterable[StreamTable], state: State | None = None
    ) -> tuple[TableStatus, ...]:
        """Return the status of the tables in a state of the catalog, or in the newest."""
        listed = tuple(tables)
        state = (self._state() if state is None else state).with_origins(listed)
        settings = self._engine.settings(state)
        network = network_of(state)
        behind = lags(state, availability(self._engine, state), datetime.now(UTC))
        stuck = blockers(state, consistency_groups(state, settings))
        iterations = {
            name: component.last_iterations
            for component in self._components(state, network)
            for name in component.members
        }
        serving = is_decoded(state) and self._engine.catalog.serving() is not None
        captured = captures(state, listed, serving=serving)
        tiers = self._tiers() if any(is_watched(table, settings) for table in listed) else {}
        return tuple(
            status_of(
                table,
                network,
                behind[table.relation],
                stuck.get(table.relation),
                tier_option(table, settings),
                tiers.get(table.relation),
                option_notices(state, table),
                last_iterations=iterations.get(f"{table.schema}.{table.name}"),
                capture=captured[table.relation],
                resumes_by_itself=_resumes_by_itself(state, table),
            )
            for table in listed
        )

    def _tiers(self) -> Mapping[str, TierInForce]:
        """Return the tiers that a daemon follows now; none while no daemon serves."""
        catalog = self._engine.catalog
        tiers = catalog.tiers() if catalog.serving() is not None else ()
        return {tier.relation: tier for tier in tiers}

    def _state(self) -> State:
        return self._engine.catalog.state()

    def _name(self, name: str) -> tuple[str, str]:
        return parse_name(name, self._engine.database.search_path[0])


def _resumes_by_itself(state: State, table: StreamTable) -> bool:
    """Return whether a suspended table goes on without being resumed by hand."""
    if table.status is not Status.SUSPENDED or table.held:
        return False
    sources = (origin for origin in map(state.origin, table.inputs) if isinstance(origin, Source))
    return table.awaits_rebuild or any(source.status is Status.SUSPENDED for source in sources)
