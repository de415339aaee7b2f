"""All records and settings of the catalog at one moment, as a value."""

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

    Records are in the order of their names, from either store.
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
        """Return the state with these records, put in order."""
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
        """Return the state with these relations in the place of those with their ids."""
        relations_by_id = {relation.id: relation for relation in (*self.relations, *relations)}
        return replace(self, relations=tuple(relations_by_id.values()))

    def with_origins(
        self, origins: Iterable[Source | StreamTable], without: Iterable[str] = ()
    ) -> State:
        """Return the state with these sources and stream tables put in, and those named removed.

        `without` names the relations of the latter.
        """
        gone = frozenset(without)
        origins_by_relation = {
            origin.relation: origin for origin in (*self.sources, *self.stream_tables, *origins)
        }
        remaining = [
            origin for origin in origins_by_relation.values() if origin.relation not in gone
        ]
        return replace(
            self,
            sources=tuple(source for source in remaining if isinstance(source, Source)),
            stream_tables=tuple(table for table in remaining if isinstance(table, StreamTable)),
        )

    def database(self, number: int) -> DatabaseRecord:
        """Return the database with this id; raise an internal error if there is none."""
        record = next((database for database in self.databases if database.id == number), None)
        if record is None:
            raise InternalError("invariant", f"the catalog has no database {number}")
        return record

    def find(self, name: str) -> Relation | None:
        """Return the relation with this id, if there is one."""
        return self._relations.get(name)

    def relation(self, name: str) -> Relation:
        """Return the relation with this id; raise an internal error if there is none."""
        relation = self._relations.get(name)
        if relation is None:
            raise InternalError("invariant", f"the catalog has no relation {name!r}")
        return relation

    def source(self, database: int, oid: int) -> Source | None:
        """Return the source that captures the table `oid` of `database`."""
        return self._sources.get((database, oid))

    def called(self, origin: Source | StreamTable) -> str:
        """Return the name for people, which begins with the alias of an attached database."""
        return ".".join(self.name_parts(origin))

    def name_parts(self, origin: Source | StreamTable) -> tuple[str, ...]:
        """Return schema and name, after the alias of an attached database."""
        name = (origin.schema, origin.name)
        if isinstance(origin, StreamTable):
            return name
        database = next((record for record in self.databases if record.id == origin.database), None)
        return name if database is None or database.address is None else (database.alias, *name)

    def stream_table(self, schema: str, name: str) -> StreamTable | None:
        return self._stream_tables.get((schema, name))

    def origin(self, relation: str) -> Source | StreamTable | None:
        """Return the source or stream table of a relation; None for a stage's hidden output."""
        return self._origins.get(relation)

    def readers(self, relation: str) -> tuple[StreamTable, ...]:
        """Return the stream tables that have the relation among their inputs."""
        return self._readers.get(relation, ())

    @property
    def to_be_rebuilt(self) -> tuple[StreamTable, ...]:
        """The stream tables that the next refresh rebuilds.

        A table whose source is suspended is rebuilt after that source is taken in again.
        """
        awaiting = [table for table in self.stream_tables if table.is_to_be_rebuilt]
        if not awaiting:
            return ()
        suspended = {
            source.relation for source in self.sources if source.status is Status.SUSPENDED
        }
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
