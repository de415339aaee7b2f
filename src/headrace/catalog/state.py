"""Everything the catalog knows at one moment, as a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from headrace.catalog.records import DatabaseRecord, Relation, Source, Status, StreamTable
from headrace.errors import InternalError


@dataclass(frozen=True)
class State:
    """The records of one snapshot of the catalog, and the settings that were set.

    Records are in the order of their names, whatever store they come from.
    """

    databases: tuple[DatabaseRecord, ...] = ()
    relations: tuple[Relation, ...] = ()
    sources: tuple[Source, ...] = ()
    stream_tables: tuple[StreamTable, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(
        databases: Iterable[DatabaseRecord],
        relations: Iterable[Relation],
        sources: Iterable[Source],
        stream_tables: Iterable[StreamTable],
        settings: Mapping[str, Any],
    ) -> State:
        """The state with these records, put in order."""
        return State(
            tuple(sorted(databases, key=lambda database: database.id)),
            tuple(sorted(relations, key=lambda relation: relation.id)),
            tuple(
                sorted(sources, key=lambda source: (source.database, source.schema, source.name))
            ),
            tuple(sorted(stream_tables, key=lambda table: (table.schema, table.name))),
            dict(sorted(settings.items())),
        )

    def with_relations(self, relations: Iterable[Relation]) -> State:
        """The state with these relations in the place of those with their ids."""
        known = {relation.id: relation for relation in (*self.relations, *relations)}
        return replace(self, relations=tuple(known.values()))

    def with_origins(
        self, origins: Iterable[Source | StreamTable], without: Iterable[str] = ()
    ) -> State:
        """The state with these sources and stream tables, without those of relations named."""
        gone = frozenset(without)
        known = {one.relation: one for one in (*self.sources, *self.stream_tables, *origins)}
        kept = [one for one in known.values() if one.relation not in gone]
        return replace(
            self,
            sources=tuple(one for one in kept if isinstance(one, Source)),
            stream_tables=tuple(one for one in kept if isinstance(one, StreamTable)),
        )

    def database(self, number: int) -> DatabaseRecord:
        """The database with this id; it is an internal error if there is none."""
        found = next((database for database in self.databases if database.id == number), None)
        if found is None:
            raise InternalError("invariant", f"the catalog has no database {number}")
        return found

    def find(self, name: str) -> Relation | None:
        """The relation with this id, if there is one."""
        return self._relations.get(name)

    def relation(self, name: str) -> Relation:
        """The relation with this id; it is an internal error if there is none."""
        found = self._relations.get(name)
        if found is None:
            raise InternalError("invariant", f"the catalog has no relation {name!r}")
        return found

    def source(self, database: int, oid: int) -> Source | None:
        """The source that captures the table `oid` of `database`."""
        return self._sources.get((database, oid))

    def called(self, origin: Source | StreamTable) -> str:
        """What people call it; a table of an attached database has the alias before its schema."""
        return ".".join(self.name_parts(origin))

    def name_parts(self, origin: Source | StreamTable) -> tuple[str, ...]:
        """Return schema and name, after the alias of an attached database."""
        name = (origin.schema, origin.name)
        if isinstance(origin, StreamTable):
            return name
        database = next((one for one in self.databases if one.id == origin.database), None)
        return name if database is None or database.address is None else (database.alias, *name)

    def stream_table(self, schema: str, name: str) -> StreamTable | None:
        return self._stream_tables.get((schema, name))

    def origin(self, relation: str) -> Source | StreamTable | None:
        """The source or stream table whose log it is; None for the hidden output of a stage."""
        return self._origins.get(relation)

    def readers(self, relation: str) -> tuple[StreamTable, ...]:
        """The stream tables that have the relation among their inputs."""
        return self._readers.get(relation, ())

    @property
    def to_be_rebuilt(self) -> tuple[StreamTable, ...]:
        """The stream tables that the next refresh rebuilds.

        One whose source is suspended is rebuilt after that source is taken in again.
        """
        awaiting = [table for table in self.stream_tables if table.is_to_be_rebuilt]
        if not awaiting:
            return ()
        suspended = {one.relation for one in self.sources if one.status is Status.SUSPENDED}
        return tuple(table for table in awaiting if suspended.isdisjoint(table.inputs))

    @cached_property
    def _relations(self) -> dict[str, Relation]:
        return {relation.id: relation for relation in self.relations}

    @cached_property
    def _sources(self) -> dict[tuple[int, int], Source]:
        return {(source.database, source.oid): source for source in self.sources}

    @cached_property
    def _stream_tables(self) -> dict[tuple[str, str], StreamTable]:
        return {(table.schema, table.name): table for table in self.stream_tables}

    @cached_property
    def _origins(self) -> dict[str, Source | StreamTable]:
        origins: tuple[Source | StreamTable, ...] = (*self.sources, *self.stream_tables)
        return {origin.relation: origin for origin in origins}

    @cached_property
    def _readers(self) -> dict[str, tuple[StreamTable, ...]]:
        readers: dict[str, tuple[StreamTable, ...]] = {}
        for table in self.stream_tables:
            for relation in dict.fromkeys(table.inputs):
                readers[relation] = (*readers.get(relation, ()), table)
        return readers
