"""Adding sources to the publication, after a check for all that could prevent it.

The name of the slot is recorded before anything is published or created, so that whatever a crash
leaves behind is found. The slot is created after the publication.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from headrace.capture.wal.following import Followed, Following
from headrace.capture.wal.identity import ReplicaIdentity
from headrace.capture.wal.publication import add_to_publication, read_publication
from headrace.capture.wal.slot import create, drop, read_status
from headrace.catalog import Change, State
from headrace.catalog.records import CaptureMode, Source
from headrace.engine import Engine
from headrace.engine.steps import MakeSlot, NameSlot, PublishSource
from headrace.errors import HeadraceError, Transient
from headrace.ingest.modes import record_modes
from headrace.ingest.wal_eligibility import Eligibility, check_eligibility
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.server import server_identity

# Seconds for which the creation of a slot waits for transactions that are open.
SLOT_SECONDS = 5
# The position of a slot that was named and perhaps not created.
NOT_MADE = -1


def publish_sources(
    engine: Engine, state: State, number: int, candidates: Sequence[Source], fence: int
) -> State:
    """Publish sources that can be followed, and record the reason with the others."""
    eligible = check_eligibility(engine, state, number, candidates)
    refused = dict(eligible.refused)
    try:
        if eligible.going:
            return _publish(engine, state, number, eligible, fence)
    except HeadraceError as error:
        refused |= dict.fromkeys(eligible.going, error.message)
        state = engine.catalog.state()
    return _refuse(engine, state, refused, fence)


def _refuse(engine: Engine, state: State, refused: Mapping[Source, str], fence: int) -> State:
    new = [
        replace(source, mode_reason=reason)
        for source, reason in refused.items()
        if source.mode_reason != reason
    ]
    return record_modes(engine, state, new, fence) if new else state


def _publish(engine: Engine, state: State, number: int, found: Eligibility, fence: int) -> State:
    database = engine.source_database(state.database(number))
    following = _named(engine, state, number, database, fence)
    followed = [s for s in state.sources if s.database == number and s.followed is not None]
    if followed and not _is_as_recorded(database, following):
        # Changes of those that are followed may be missing: a cut has to find that out first.
        return _refuse(engine, engine.catalog.state(), found.refused, fence)
    published: list[Source] = []
    refused = dict(found.refused)
    for source in found.going:
        try:
            with engine.step(PublishSource(source.relation)):
                add_to_publication(database, found.tables[source.oid])
        except HeadraceError as error:
            refused[source] = error.message
        else:
            published.append(source)
    if not published:
        return _refuse(engine, engine.catalog.state(), refused, fence)
    relied = any(source.mode is CaptureMode.WAL for source in followed)
    following = _made(engine, state, number, database, following, fence, relied=relied)
    return _record(engine, number, database, following, published, found.identities, fence, refused)


def _is_as_recorded(database: Database, following: Following) -> bool:
    """Return whether the publication is the recorded one, with the same options."""
    with database.session() as connection:
        publication = read_publication(connection)
    recorded = following.publication_oid, following.publication_xmin
    return publication is not None and (publication.oid, publication.xmin) == recorded


def _record(
    engine: Engine,
    number: int,
    database: Database,
    following: Following,
    sources: Sequence[Source],
    identities: Mapping[int, ReplicaIdentity],
    fence: int,
    refused: Mapping[Source, str],
) -> State:
    """Record published sources as in transition, from the next transaction on."""
    state = engine.catalog.state()
    with database.session() as connection, translated():
        publication = read_publication(connection)
        row = connection.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        ).fetchone()
    entries = {} if publication is None else publication.entries
    if publication is None or row is None or any(s.oid not in entries for s in sources):
        raise Transient("cut-interrupted", "the publication was changed just now")
    now = datetime.now(UTC)
    records = []
    for source in sources:
        entry, identity = entries[source.oid], identities[source.oid]
        followed = Followed(
            int(row[0]), now, (entry.oid, entry.xmin), identity.kind, identity.key, identity.index
        )
        records.append(
            replace(source, mode=CaptureMode.TRANSITIONING, mode_reason=None, followed=followed)
        )
    records += [replace(source, mode_reason=reason) for source, reason in refused.items()]
    if not any(s.followed is not None for s in state.sources if s.database == number):
        following = replace(
            following, publication_oid=publication.oid, publication_xmin=publication.xmin
        )
    moved = replace(state.database(number), following=following)
    return record_modes(engine, state, records, fence, moved)


def _named(engine: Engine, state: State, number: int, database: Database, fence: int) -> Following:
    """Return the record of the slot, whose name is durable before anything is published."""
    record = state.database(number)
    if record.following is not None:
        return record.following
    with database.session() as connection:
        name, server = connection.info.dbname, server_identity(connection)
    slot = f"headrace_{secrets.token_hex(4)}"
    following = Following(slot, name, NOT_MADE, 0, "", server.system_identifier, server.timeline)
    return _name(engine, state, number, following, fence)


def _name(engine: Engine, state: State, number: int, following: Following, fence: int) -> Following:
    """Record the name of a slot that will be created, and return the record."""
    with engine.step(NameSlot(following.slot)), engine.changing(state) as current:
        named = replace(current.database(number), following=following)
        engine.catalog.commit(Change(put=(named,)), fence=fence)
    return following


def _made(
    engine: Engine,
    state: State,
    number: int,
    database: Database,
    following: Following,
    fence: int,
    *,
    relied: bool,
) -> Following:
    """Return the record of the slot, which is created if missing; then with its first position.

    If a source relies on a slot that was lost, the next cut detects that.
    """
    with database.session() as connection:
        status = read_status(connection, following.slot)
    usable = status is not None and not status.lost
    if following.acknowledged != NOT_MADE and (relied or usable):
        return following
    if following.acknowledged != NOT_MADE:
        following = _name(engine, state, number, replace(following, acknowledged=NOT_MADE), fence)
    with engine.step(MakeSlot(following.slot)):
        if status is not None:
            engine.slot_readers.release(following.slot)
            drop(database, following.slot)
        position = create(database, following.slot, seconds=SLOT_SECONDS)
    return replace(following, acknowledged=position)
