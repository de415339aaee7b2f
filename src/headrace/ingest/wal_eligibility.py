"""Which sources can be read from the log as things are, asked before anything is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.capture.recopy_reasons import captured_part
from headrace.capture.wal.availability import Obstacle, Server, obstacle, read_server
from headrace.capture.wal.identity import ReplicaIdentity, auto_replica_identity, identities
from headrace.catalog import State
from headrace.catalog.records import Source
from headrace.engine import Engine
from headrace.errors import HeadraceError
from headrace.ingest.requested_modes import requested_mode_of
from headrace.source.connection import Database
from headrace.source.introspect import inspect
from headrace.source.table import SourceTable


@dataclass(frozen=True)
class Suitable:
    """Those that can go, with their tables and what the log has of old rows (by oid); and why not.

    The tables have their captured columns only.
    """

    going: tuple[Source, ...] = ()
    refused: Mapping[Source, str] = field(default_factory=dict)
    tables: Mapping[int, SourceTable] = field(default_factory=dict)
    identities: Mapping[int, ReplicaIdentity] = field(default_factory=dict)


def suitable(engine: Engine, state: State, number: int, candidates: Sequence[Source]) -> Suitable:
    """Look at candidates of one database; replica identities are changed if a setting allows it.

    A slot that could fill the server's disk is made only for those that ask for the log by name.
    """
    settings = engine.settings(state)
    record = state.database(number)
    database = engine.source_database(record)
    slot = "" if record.following is None else record.following.slot
    unasked = {s for s in candidates if requested_mode_of(state, settings, s) == "auto"}
    try:
        seen = _look(database, slot, candidates)
        if settings.auto_replica_identity:
            changed = [
                auto_replica_identity(database, seen.identities[source.oid], state.called(source))
                for source in candidates
                if source.oid in seen.identities
                and seen.obstacle(source, source in unasked, may_change=True) is None
            ]
            if any(changed):
                seen = _look(database, slot, candidates)
    except HeadraceError as error:
        return Suitable(refused=dict.fromkeys(candidates, error.message))
    standing = {source: seen.obstacle(source, source in unasked) for source in candidates}
    return Suitable(
        tuple(source for source, one in standing.items() if one is None),
        {source: one.reason for source, one in standing.items() if one is not None},
        seen.tables,
        seen.identities,
    )


@dataclass(frozen=True)
class _Seen:
    server: Server
    tables: Mapping[int, SourceTable]
    identities: Mapping[int, ReplicaIdentity]

    def obstacle(
        self, source: Source, unasked: bool, *, may_change: bool = False
    ) -> Obstacle | None:
        table, identity = self.tables.get(source.oid), self.identities.get(source.oid)
        return obstacle(self.server, table, identity, unasked=unasked, may_change=may_change)


def _look(database: Database, slot: str, sources: Sequence[Source]) -> _Seen:
    with database.session() as connection:
        server = read_server(connection, slot)
        there = inspect(connection, [source.oid for source in sources])
        tables = {s.oid: captured_part(s, there[s.oid]) for s in sources if s.oid in there}
        found = identities(connection, tables.values(), database.version)
    return _Seen(server, tables, found)
