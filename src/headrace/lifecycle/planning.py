"""Which stream tables have to be made, in which order, and what that moves: nothing is written.

A table that is made anew gets new relations. So does everything that reads it, directly or not;
readers that stand still are only told, and are made anew when they go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection

from headrace.catalog import State, new_relation_id
from headrace.catalog.records import Source, Status, StreamTable
from headrace.definition import relation_of
from headrace.engine import Engine
from headrace.errors import UserError
from headrace.graph import downstream, upstream
from headrace.lifecycle.check import CaptureAnew, Making, Request, check, check_free, rebind
from headrace.lifecycle.inputs import source_of
from headrace.lifecycle.names import parse_name, quoted_name
from headrace.lifecycle.whole import is_whole
from headrace.lifecycle.wish import READER, Reads, Wish
from headrace.publish.replace import reshape
from headrace.publish.served import create_served
from headrace.source.faults import translated
from headrace.source.introspect import inspect
from headrace.store import Pin


@dataclass(frozen=True)
class Work:
    """Tables to be made, each after those it reads, and sources to be captured anew, old and new.

    `moved` gives for every relation that goes the one that takes its place; `failing` gives the
    readers that cannot be made anew, with the reason.
    """

    makings: tuple[Making, ...]
    recaptured: tuple[tuple[Source, Source], ...]
    moved: dict[str, str]
    failing: dict[str, str]


def plan(
    engine: Engine, state: State, wishes: Sequence[Wish], damaged: frozenset[str] = frozenset()
) -> Work:
    """The work that fulfils the wishes and brings all readers along.

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
                return _plan(engine, connection, state, wishes, anew)
        except CaptureAnew as found:
            anew.add(found.relation)


def _plan(
    engine: Engine,
    connection: Connection[Any],
    state: State,
    wishes: Sequence[Wish],
    anew: set[str],
) -> Work:
    for wish in wishes:
        if wish.request is not None:
            name = parse_name(wish.request.name, engine.database.search_path[0])
            if wish.old is None or (wish.old.schema, wish.old.name) != name:
                check_free(connection, state, *name)
    planning = _Planning(connection, state, engine.database.search_path)
    planning.capture_anew([source for source in state.sources if source.relation in anew])
    reads = Reads.of(connection, state, wishes, engine.database.search_path)
    wished = {wish.old.relation for wish in reads.wishes.values() if wish.old is not None}
    readers = [
        reader
        for reader in downstream(state.stream_tables, *wished, *planning.moved)
        if reader.relation not in wished
    ]
    for wish in reads.ordered(readers):
        if planning.makings:
            planning.rehearse(planning.makings[-1])
        if any(wish is one for one in reads.wishes.values()):
            planning.add(planning.wished(wish))
        else:
            assert wish.old is not None
            planning.bring(wish.old, state)
    for making in planning.makings[-1:]:
        if making.old is not None:
            planning.rehearse(making)
    return Work(
        tuple(planning.makings), tuple(planning.recaptured), planning.moved, planning.failing
    )


@dataclass
class _Planning:
    """A plan in the making: `state` is the catalog's as if all of it were done already."""

    connection: Connection[Any]
    state: State
    search_path: tuple[str, ...]
    makings: list[Making] = field(default_factory=list)
    recaptured: list[tuple[Source, Source]] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)
    rehearsed: set[str] = field(default_factory=set)

    def capture_anew(self, sources: Sequence[Source]) -> None:
        """Give sources new logs, with their tables' columns of now."""
        tables = inspect(self.connection, [source.oid for source in sources])
        for old in sources:
            if old.oid in tables:
                new = source_of(tables[old.oid], new_relation_id())
                self.recaptured.append((old, new))
                self.moved[old.relation] = new.relation
                self.state = self.state.with_origins([new], without=[old.relation])

    def wished(self, wish: Wish) -> Making:
        """What a wish comes to: over its inputs as they are, or as its text says."""
        old, request, search_path = wish.old, wish.request, self.search_path
        if request is None:
            assert old is not None
            if is_whole(self.connection, self.state, old, self.moved):
                return rebind(self.connection, self.state, old, self.moved, reason=wish.reason)
            search_path = old.search_path
            name = quoted_name(old.schema, old.name)
            request = Request(name, old.query, old.schedule, old.refresh_mode, dict(old.options))
        return check(self.connection, self.state, request, search_path, old=old, reason=wish.reason)

    def bring(self, reader: StreamTable, before: State) -> None:
        """Plan a reader of what is made anew, unless it stands still or cannot."""
        inputs = [one for one in reader.inputs if one in self.moved]
        if not inputs or self._stands_still(reader, before):
            return
        try:
            making = rebind(self.connection, self.state, reader, self.moved, reason=READER)
        except UserError as error:
            cause = next((t for t in before.stream_tables if t.relation in inputs), None)
            if cause is None:
                self.failing[reader.relation] = error.message
                return
            raise UserError(
                "has-dependents",
                f"stream table {reader.schema}.{reader.name} reads"
                f" {cause.schema}.{cause.name} and could not go on",
                detail=f"{error.message[:1].upper()}{error.message[1:]}.",
                hint="Alter or drop it first.",
            ) from error
        self.add(making)

    def _stands_still(self, reader: StreamTable, before: State) -> bool:
        """Whether a reader, or something else that it reads, is suspended and stays so.

        With a source that is captured anew those go on that were not suspended by hand.
        """
        if reader.held:
            return True
        freed = any(old.relation in reader.inputs for old, _ in self.recaptured)
        return any(
            one.status is Status.SUSPENDED
            and one.relation not in self.moved
            and not (one.relation == reader.relation and freed)
            for one in upstream(before.stream_tables, reader)
        )

    def add(self, making: Making) -> None:
        """Take a table into the plan, for others to be bound to it."""
        gone = []
        if making.old is not None:
            gone = [making.old.relation]
            self.moved[making.old.relation] = making.table.relation
        origins: tuple[Source | StreamTable, ...] = (*making.sources, making.table)
        relations = [relation_of(stage, Pin(0, 0)) for stage in making.definition.stages]
        self.state = self.state.with_origins(origins, gone).with_relations(relations)
        self.makings.append(making)

    def rehearse(self, making: Making) -> None:
        """Do what publish will do to the served table, for others to be described over it."""
        if making.table.relation in self.rehearsed:
            return
        self.rehearsed.add(making.table.relation)
        if making.old is None:
            create_served(self.connection, making.table)
        else:
            reshape(self.connection, making.old, making.table)
