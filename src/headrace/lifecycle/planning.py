"""Which stream tables have to be made, in which order, and what that moves: nothing is written.

A table that is made anew gets new relations. So does everything that reads it, directly or not;
readers that stand still are only told, and are made anew when they go on.
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
from headrace.lifecycle.drift import fulfil, rebind
from headrace.lifecycle.name_resolver import NameResolver, source_of
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.planned_table import (
    CaptureAnew,
    PlannedTable,
    check_free,
    could_not_go_on,
)
from headrace.lifecycle.table_spec import READER, SpecDependencies, TableSpec, Wishes
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
    """Tables to be made, each after those it reads, and sources to be captured anew, old and new.

    `moved` gives for every relation that goes the one that takes its place; `failing` gives the
    readers that cannot be made anew, with the reason.
    """

    makings: tuple[PlannedTable, ...]
    recaptured: tuple[tuple[Source, Source], ...]
    moved: dict[str, str]
    failing: dict[str, str]


def plan(
    engine: Engine,
    state: State,
    wishes: Sequence[TableSpec],
    damaged: frozenset[str] = frozenset(),
    altered: Sequence[StreamTable] = (),
) -> Work:
    """The work that fulfils the wishes and brings all readers along.

    `altered` are tables that get other options at the same time, and nothing else.
    Sources that are `damaged`, or have not captured what is used of them as it is now, are
    captured anew. UserError `has-dependents` where a reader could not go on. PostgreSQL is asked
    about queries over tables that are not there yet in a transaction that makes them and is
    rolled back.
    """
    anew = set(damaged)
    while True:
        try:
            with (
                translated(),
                engine.database.session() as connection,
                connection.transaction(force_rollback=True),
            ):
                work, after = _plan(engine, connection, state.with_origins(altered), wishes, anew)
        except CaptureAnew as found:
            anew.add(found.relation)
            continue
        check_modes(engine, state, after)
        return work


def _plan(
    engine: Engine,
    connection: Connection[Any],
    state: State,
    wishes: Sequence[TableSpec],
    anew: set[str],
) -> tuple[Work, State]:
    """The work, and the state as if all of it were done."""
    for wish in wishes:
        if wish.request is not None:
            name = parse_name(wish.request.name, engine.database.search_path[0])
            if wish.old is None or (wish.old.schema, wish.old.name) != name:
                check_free(connection, state, *name)
    settings = engine.settings(state)
    planning = Planning(
        NameResolver.of(engine, connection, state),
        state,
        engine.database.search_path,
        settings.stratified_cycle_validation,
    )
    planning.capture_anew([source for source in state.sources if source.relation in anew])
    reads = SpecDependencies.of(connection, state, wishes, engine.database.search_path)
    wished = {wish.old.relation for wish in reads.wishes.values() if wish.old is not None}
    readers = [
        reader
        for reader in downstream(state.stream_tables, *wished, *planning.moved)
        if reader.relation not in wished and not reader.is_uninitialized
    ]
    for together, cyclic in reads.ordered(readers, allow_circular=settings.allow_circular):
        for making in planning.makings:
            planning.rehearse(making)
        inside = reads.inside(together) if cyclic else None
        if reads.wishes.keys().isdisjoint(together):
            planning.bring(together, inside, state)
        else:
            planning.require_going(together, reads.wishes)
            planning.add(*planning.fulfil(together, inside))
    for making in planning.makings:
        if making.old is not None:
            planning.rehearse(making)
    work = Work(
        tuple(planning.makings), tuple(planning.recaptured), planning.moved, planning.failing
    )
    return work, planning.state


@dataclass
class Planning:
    """A plan in the making: `state` is the catalog's as if all of it were done already."""

    reach: NameResolver
    state: State
    search_path: tuple[str, ...]
    stratified: bool = True
    makings: list[PlannedTable] = field(default_factory=list)
    recaptured: list[tuple[Source, Source]] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)
    rehearsed: set[str] = field(default_factory=set)

    def capture_anew(self, sources: Sequence[Source]) -> None:
        """Give sources new logs, with their tables' columns of now."""
        tables = self.reach.inspect(sources)
        for old in sources:
            if old.relation in tables:
                new = source_of(tables[old.relation], new_relation_id(), old.database)
                self.recaptured.append((old, new))
                self.moved[old.relation] = new.relation
                self.state = self.state.with_origins([new], without=[old.relation])

    def fulfil(self, wishes: Wishes, inside: ReadsInside | None) -> tuple[PlannedTable, ...]:
        """What wishes come to: one alone, or those of a cycle, which read each other."""
        if inside is None:
            (wish,) = wishes.values()
            return (fulfil(self.reach, self.state, wish, self.moved, self.search_path),)
        makings = check_cycle(
            self.reach,
            self.state,
            wishes,
            inside,
            self.moved,
            self.search_path,
            stratified=self.stratified,
        )
        self.rehearsed |= {making.table.relation for making in makings}
        return makings

    def require_going(self, together: Wishes, wished: Wishes) -> None:
        """Refuse to make a cycle anew of which one stands still.

        Where somebody asked for it, one that was not suspended by hand goes on with the others.
        """
        asked = any(wish.reason != READER for wish in together.values())
        for name, wish in together.items():
            if name not in wished and wish.old is not None and (wish.old.held or not asked):
                require_active((wish.old,))

    def bring(self, wishes: Wishes, inside: ReadsInside | None, before: State) -> None:
        """Plan readers of what is made anew, unless they stand still or cannot."""
        readers = [wish.old for wish in wishes.values() if wish.old is not None]
        inputs = [one for reader in readers for one in reader.inputs if one in self.moved]
        if not inputs or self._stand_still(readers, before):
            return
        try:
            makings = self._brought(readers) if inside is None else self.fulfil(wishes, inside)
        except UserError as error:
            cause = next((t for t in before.stream_tables if t.relation in inputs), None)
            if cause is None:
                self.failing |= {reader.relation: error.message for reader in readers}
                return
            raise could_not_go_on(readers[0], f"{cause.schema}.{cause.name}", error) from error
        self.add(*makings)

    def _brought(self, readers: Sequence[StreamTable]) -> tuple[PlannedTable, ...]:
        (reader,) = readers
        return (rebind(self.reach, self.state, reader, self.moved, reason=READER),)

    def _stand_still(self, readers: Sequence[StreamTable], before: State) -> bool:
        """Whether a reader, or something else that it reads, is suspended and stays so.

        With a source that is captured again those go on that were not suspended by hand: a reader
        of it, or all of the cycle that has one.
        """
        if any(reader.held for reader in readers):
            return True
        together = {reader.relation for reader in readers}
        inputs = {one for reader in readers for one in reader.inputs}
        freed = any(old.relation in inputs for old, _ in self.recaptured)
        return any(
            one.status is Status.SUSPENDED
            and one.relation not in self.moved
            and not (one.relation in together and freed)
            for reader in readers
            for one in upstream(before.stream_tables, reader)
        )

    def add(self, *makings: PlannedTable) -> None:
        """Take tables into the plan, for others to be bound to them."""
        for making in makings:
            gone = []
            if making.old is not None:
                gone = [making.old.relation]
                self.moved[making.old.relation] = making.table.relation
            # What is not captured yet for a table without rows may be captured otherwise.
            sources = making.sources
            if making.empty:
                sources = tuple(s for s in sources if self.state.origin(s.relation) is None)
            origins: tuple[Source | StreamTable, ...] = (*sources, making.table)
            relations = [relation_of(stage, Pin(0, 0)) for stage in making.definition.stages]
            self.state = self.state.with_origins(origins, gone).with_relations(relations)
            self.makings.append(making)

    def rehearse(self, making: PlannedTable) -> None:
        """Do what publish will do to the served table, for others to be described over it."""
        if making.table.relation in self.rehearsed:
            return
        self.rehearsed.add(making.table.relation)
        if making.old is None:
            create_served(self.reach.home, making.table)
        else:
            reshape(self.reach.home, making.old, making.table)
