"""Sources enter the publication, after everything was asked that could stand in the way.

Two things are recorded before they are there, so that nothing is left behind unknown: the name of
the slot, and that a source is on its way. PostgreSQL makes the slot after the publication.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from headrace.capture.wal.availability import Server, obstacles, read_server, unbounded
from headrace.capture.wal.following import Followed, Following
from headrace.capture.wal.identity import Identity, auto_replica_identity, identities
from headrace.capture.wal.publication import publish, read_publication
from headrace.capture.wal.slot import create, drop, read_status
from headrace.catalog import Change, State
from headrace.catalog.records import CaptureMode, Source
from headrace.engine import Engine
from headrace.errors import HeadraceError
from headrace.ingest.modes import record_modes
from headrace.ingest.wishes import wished_mode
from headrace.settings import Settings
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.introspect import inspect
from headrace.source.table import SourceTable
from headrace.steps import MakeSlot, NameSlot, PublishSource

# Seconds for which making a slot waits for transactions that are open.
SLOT_SECONDS = 5
# The position of a slot that was named and perhaps not made.
NOT_MADE = -1


def publish_sources(
    engine: Engine, state: State, number: int, candidates: Sequence[Source], fence: int
) -> State:
    """Publish those that can be followed; the others are told why not."""
    database = engine.source_database(state.database(number))
    settings = engine.settings(state)
    refused: dict[Source, str] = {}
    tables: dict[int, SourceTable] = {}
    found: dict[int, Identity] = {}
    try:
        tables, found = _look(database, candidates, settings)
        server = _server(database, state, number)
        standing = [obstacle.reason for obstacle in obstacles(server)]
        careful = unbounded(server)
        for source in candidates:
            reasons = list(standing)
            if careful is not None and wished_mode(state, settings, source) == "auto":
                reasons.append(careful.reason)
            why = next(iter(reasons), None) or _unsuitable(source, found.get(source.oid))
            if why is not None:
                refused[source] = why
    except HeadraceError as error:
        refused = dict.fromkeys(candidates, error.message)
    going = [source for source in candidates if source not in refused]
    try:
        if going:
            return _publish(engine, state, number, going, tables, found, fence, refused)
    except HeadraceError as error:
        refused |= dict.fromkeys(going, error.message)
        state = engine.catalog.state()
    return _refuse(engine, state, refused, fence)


def _unsuitable(source: Source, identity: Identity | None) -> str | None:
    """Why the log would not tell enough of a source."""
    if identity is None:
        return "the table is not there"
    stored = {column.number for column in source.columns if column.type is not None}
    if not stored.issuperset(identity.key):
        return "a column of its key cannot be stored"
    return identity.reason if identity.kind == "none" else None


def _look(
    database: Database, sources: Sequence[Source], settings: Settings
) -> tuple[dict[int, SourceTable], dict[int, Identity]]:
    """The tables as they are, and what of their old rows the log would have."""
    with database.session() as connection:
        tables = inspect(connection, [source.oid for source in sources])
        found = identities(connection, tables.values(), database.version)
    if settings.auto_replica_identity:
        changed = [
            auto_replica_identity(database, found[oid], f"{table.schema}.{table.name}")
            for oid, table in tables.items()
            if oid in found
        ]
        if any(changed):
            with database.session() as connection:
                found = identities(connection, tables.values(), database.version)
    return tables, found


def _server(database: Database, state: State, number: int) -> Server:
    following = state.database(number).following
    with database.session() as connection:
        return read_server(connection, "" if following is None else following.slot)


def _refuse(engine: Engine, state: State, refused: Mapping[Source, str], fence: int) -> State:
    new = [
        replace(source, mode_reason=reason)
        for source, reason in refused.items()
        if source.mode_reason != reason
    ]
    return record_modes(engine, state, new, fence) if new else state


def _publish(
    engine: Engine,
    state: State,
    number: int,
    sources: Sequence[Source],
    tables: Mapping[int, SourceTable],
    found: Mapping[int, Identity],
    fence: int,
    refused: Mapping[Source, str],
) -> State:
    database = engine.source_database(state.database(number))
    for source in sources:
        with engine.step(PublishSource(source.relation)):
            publish(database, tables[source.oid])
    following = _followed_by(engine, state, number, database, fence)
    state = engine.catalog.state()
    with database.session() as connection, translated():
        publication = read_publication(connection)
        row = connection.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        ).fetchone()
    assert publication is not None and row is not None
    now = datetime.now(UTC)
    records = []
    for source in sources:
        entry, identity = publication.entries[source.oid], found[source.oid]
        followed = Followed(
            int(row[0]), now, (entry.oid, entry.xmin), identity.kind, identity.key, identity.index
        )
        records.append(
            replace(source, mode=CaptureMode.TRANSITIONING, mode_reason=None, followed=followed)
        )
    records += [replace(source, mode_reason=reason) for source, reason in refused.items()]
    moved = replace(
        state.database(number),
        following=replace(
            following,
            publication_oid=publication.oid,
            publication_xmin=publication.xmin,
        ),
    )
    return record_modes(engine, state, records, fence, moved)


def _followed_by(
    engine: Engine, state: State, number: int, database: Database, fence: int
) -> Following:
    """The slot of a database, made if there is none; its name is recorded first."""
    record = state.database(number)
    following = record.following
    if following is None:
        with database.session() as connection, translated():
            name = connection.info.dbname
            identity = connection.execute(
                "SELECT (SELECT system_identifier::text FROM pg_control_system()),"
                " ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))"
                "::bit(32)::integer"
            ).fetchone()
        assert identity is not None
        slot = f"headrace_{secrets.token_hex(4)}"
        following = Following(slot, name, NOT_MADE, 0, "", *identity)
        with engine.step(NameSlot(slot)), engine.changing(state):
            change = Change(put=(replace(record, following=following),))
            engine.catalog.commit(change, fence=fence)
    if following.acknowledged != NOT_MADE:
        return following
    with database.session() as connection:
        left_behind = read_status(connection, following.slot) is not None
    with engine.step(MakeSlot(following.slot)):
        if left_behind:
            drop(database, following.slot)
        position = create(database, following.slot, seconds=SLOT_SECONDS)
    return replace(following, acknowledged=position)
