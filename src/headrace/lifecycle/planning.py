"""Plan which stream tables are built, in which order, and what moves; write nothing.

A rebuilt table gets new relations, and so does everything that reads it, directly or not. Suspended
readers are only marked, and rebuilt when they are resumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection

from headrace.catalog import State, new_relation_id
from headrace.catalog.records import Source, Status, StreamTable
from headrace.engine import Engine
from headrace.errors import UserError
from headrace.graph import downstream, upstream
from headrace.lifecycle.capture_requirements import check_modes
from headrace.lifecycle.cycle_check import check_cycle
from headrace.lifecycle.cycle_members import Name
from headrace.lifecycle.drift import plan_spec, rebind
from headrace.lifecycle.name_resolver import NameResolver, source_of
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.planned_table import (
    PlannedTable,
    RecaptureNeeded,
    check_free,
    reader_would_fail,
)
from headrace.lifecycle.table_spec import READER, SpecDependencies, TableSpec, TableSpecs
from headrace.publish.replace import reshape
from headrace.publish.served import create_served
from headrace.refresh.refresh import require_active
from headrace.relations.definition import relation_of
from headrace.source.faults import translated
from headrace.store import Pin

ReadsInside = Mapping[Name, frozenset[Name]]
"""Who reads whom of a cycle's tables."""


@dataclass(frozen=True)
class Work:
    """Tables to be built, each after those it reads, and sources to be recaptured, old and new.

    `moved` gives for every relation that goes the one that takes its place; `failing` gives the
    readers that cannot be rebuilt, with the reason.
    """

    planned_tables: tuple[PlannedTable, ...]
    recaptured: tuple[tuple[Source, Source], ...]
    moved: dict[str, str]
    failing: dict[str, str]


def plan(
    engine: Engine,
    state: State,
    specs: Sequence[TableSpec],
    damaged: frozenset[str] = frozenset(),
    altered: Sequence[StreamTable] = (),
) -> Work:
    """Plan the tables of the specs, and rebuild all their readers.

    `altered` are tables that get other options at the same time, and nothing else. Sources that are
    `damaged`, or have not captured what is used of them as it is now, are recaptured. Raise
    `has-dependents` where a reader would fail. PostgreSQL describes queries over tables that do not
    exist yet in a transaction that creates the tables and is rolled back.
    """
    recaptured = set(damaged)
    while True:
        try:
            with (
                translated(),
                engine.database.session() as connection,
                connection.transaction(force_rollback=True),
            ):
                work, after = _plan(
                    engine, connection, state.with_origins(altered), specs, recaptured
                )
        except RecaptureNeeded as needed:
            recaptured.add(needed.relation)
            continue
        check_modes(engine, state, after)
        return work


def _plan(
    engine: Engine,
    connection: Connection[Any],
    state: State,
    specs: Sequence[TableSpec],
    recaptured: set[str],
) -> tuple[Work, State]:
    """Return the work, and the state as if all of it were done."""
    for spec in specs:
        if spec.request is not None:
            name = parse_name(spec.request.name, engine.database.search_path[0])
            if spec.old is None or (spec.old.schema, spec.old.name) != name:
                check_free(connection, state, *name)
    settings = engine.settings(state)
    builder = PlanBuilder(
        NameResolver.of(engine, connection, state),
        state,
        engine.database.search_path,
        settings.stratified_cycle_validation,
    )
    builder.recapture([source for source in state.sources if source.relation in recaptured])
    reads = SpecDependencies.of(connection, state, specs, engine.database.search_path)
    requested = {spec.old.relation for spec in reads.specs.values() if spec.old is not None}
    readers = [
        reader
        for reader in downstream(state.stream_tables, *requested, *builder.moved)
        if reader.relation not in requested and not reader.is_uninitialized
    ]
    for together, cyclic in reads.ordered(readers, allow_circular=settings.allow_circular):
        for planned in builder.planned_tables:
            builder.rehearse(planned)
        inside = reads.inside(together) if cyclic else None
        if reads.specs.keys().isdisjoint(together):
            builder.bring(together, inside, state)
        else:
            builder.require_not_suspended(together, reads.specs)
            builder.add(*builder.plan_specs(together, inside))
    for planned in builder.planned_tables:
        if planned.old is not None:
            builder.rehearse(planned)
    work = Work(
        tuple(builder.planned_tables), tuple(builder.recaptured), builder.moved, builder.failing
    )
    return work, builder.state


@dataclass
class PlanBuilder:
    """A plan in progress: `state` is the catalog's as if all of it were done already."""

    resolver: NameResolver
    state: State
    search_path: tuple[str, ...]
    stratified: bool = True
    planned_tables: list[PlannedTable] = field(default_factory=list)
    recaptured: list[tuple[Source, Source]] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)
    rehearsed: set[str] = field(default_factory=set)

    def recapture(self, sources: Sequence[Source]) -> None:
        """Give sources new logs, with their tables' current columns."""
        tables = self.resolver.inspect(sources)
        for old in sources:
            if old.relation in tables:
                new = source_of(tables[old.relation], new_relation_id(), old.database)
                self.recaptured.append((old, new))
                self.moved[old.relation] = new.relation
                self.state = self.state.with_origins([new], without=[old.relation])

    def plan_specs(self, specs: TableSpecs, inside: ReadsInside | None) -> tuple[PlannedTable, ...]:
        """Plan the table of one spec, or the tables of a cycle, which read each other."""
        if inside is None:
            (spec,) = specs.values()
            return (plan_spec(self.resolver, self.state, spec, self.moved, self.search_path),)
        planned_tables = check_cycle(
            self.resolver,
            self.state,
            specs,
            inside,
            self.moved,
            self.search_path,
            stratified=self.stratified,
        )
        self.rehearsed |= {planned.table.relation for planned in planned_tables}
        return planned_tables

    def require_not_suspended(self, together: TableSpecs, requested: TableSpecs) -> None:
        """Refuse to rebuild a cycle with a suspended member.

        In a requested rebuild, a member that was not suspended by hand is rebuilt with the others.
        """
        is_requested = any(spec.reason != READER for spec in together.values())
        for name, spec in together.items():
            if (
                name not in requested
                and spec.old is not None
                and (spec.old.held or not is_requested)
            ):
                require_active((spec.old,))

    def bring(self, specs: TableSpecs, inside: ReadsInside | None, before: State) -> None:
        """Plan the readers of rebuilt tables, unless they are suspended or fail."""
        readers = [spec.old for spec in specs.values() if spec.old is not None]
        inputs = [
            relation for reader in readers for relation in reader.inputs if relation in self.moved
        ]
        if not inputs or self._are_stopped(readers, before):
            return
        try:
            planned_tables = (
                self._rebound(readers) if inside is None else self.plan_specs(specs, inside)
            )
        except UserError as error:
            cause = next((t for t in before.stream_tables if t.relation in inputs), None)
            if cause is None:
                self.failing |= {reader.relation: error.message for reader in readers}
                return
            raise reader_would_fail(readers[0], f"{cause.schema}.{cause.name}", error) from error
        self.add(*planned_tables)

    def _rebound(self, readers: Sequence[StreamTable]) -> tuple[PlannedTable, ...]:
        (reader,) = readers
        return (rebind(self.resolver, self.state, reader, self.moved, reason=READER),)

    def _are_stopped(self, readers: Sequence[StreamTable], before: State) -> bool:
        """Return whether a reader, or a table that it reads, is suspended and stays so.

        A source that is recaptured resumes what was not suspended by hand: a reader of the source,
        or all tables of the cycle that the reader is in.
        """
        if any(reader.held for reader in readers):
            return True
        together = {reader.relation for reader in readers}
        inputs = {relation for reader in readers for relation in reader.inputs}
        freed = any(old.relation in inputs for old, _ in self.recaptured)
        return any(
            table.status is Status.SUSPENDED
            and table.relation not in self.moved
            and not (table.relation in together and freed)
            for reader in readers
            for table in upstream(before.stream_tables, reader)
        )

    def add(self, *planned_tables: PlannedTable) -> None:
        """Add tables to the plan, for others to be bound to them."""
        for planned in planned_tables:
            gone = []
            if planned.old is not None:
                gone = [planned.old.relation]
                self.moved[planned.old.relation] = planned.table.relation
            # A table without rows does not fix how a source that is not captured yet will be
            # captured.
            sources = planned.sources
            if planned.empty:
                sources = tuple(s for s in sources if self.state.origin(s.relation) is None)
            origins: tuple[Source | StreamTable, ...] = (*sources, planned.table)
            relations = [relation_of(stage, Pin(0, 0)) for stage in planned.definition.stages]
            self.state = self.state.with_origins(origins, gone).with_relations(relations)
            self.planned_tables.append(planned)

    def rehearse(self, planned: PlannedTable) -> None:
        """Change the served table as publish will, so that others can be described over it."""
        if planned.table.relation in self.rehearsed:
            return
        self.rehearsed.add(planned.table.relation)
        if planned.old is None:
            create_served(self.resolver.home, planned.table)
        else:
            reshape(self.resolver.home, planned.old, planned.table)
