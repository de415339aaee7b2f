"""Which sources can be read from the WAL, checked before anything is published."""

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
class Eligibility:
    """The sources that can be read from the WAL, and the reasons against the `refused` ones.

    Of those that can, by oid: `tables`, with their captured columns only, and `identities`, which
    say what the WAL has of old rows.
    """

    going: tuple[Source, ...] = ()
    refused: Mapping[Source, str] = field(default_factory=dict)
    tables: Mapping[int, SourceTable] = field(default_factory=dict)
    identities: Mapping[int, ReplicaIdentity] = field(default_factory=dict)


def check_eligibility(
    engine: Engine, state: State, number: int, candidates: Sequence[Source]
) -> Eligibility:
    """Return which candidates of one database can be read from the WAL.

    Replica identities are changed if a setting allows it. A slot that could fill the server's disk
    is created only for sources for which WAL mode is requested by name.
    """
    settings = engine.settings(state)
    record = state.database(number)
    database = engine.source_database(record)
    slot = "" if record.following is None else record.following.slot
    unasked = {s for s in candidates if requested_mode_of(state, settings, s) == "auto"}
    try:
        facts = _look(database, slot, candidates)
        if settings.auto_replica_identity:
            changed = [
                auto_replica_identity(database, facts.identities[source.oid], state.called(source))
                for source in candidates
                if source.oid in facts.identities
                and facts.obstacle(source, source in unasked, may_change=True) is None
            ]
            if any(changed):
                facts = _look(database, slot, candidates)
    except HeadraceError as error:
        return Eligibility(refused=dict.fromkeys(candidates, error.message))
    problems = {source: facts.obstacle(source, source in unasked) for source in candidates}
    return Eligibility(
        tuple(source for source, problem in problems.items() if problem is None),
        {source: problem.reason for source, problem in problems.items() if problem is not None},
        facts.tables,
        facts.identities,
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
        inspected = inspect(connection, [source.oid for source in sources])
        tables = {s.oid: captured_part(s, inspected[s.oid]) for s in sources if s.oid in inspected}
        replica_identities = identities(connection, tables.values(), database.version)
    return _Seen(server, tables, replica_identities)
