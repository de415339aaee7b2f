"""Whether a slot still continues what was read before: its state compared with the record.

The probe reads the slot, the publication and the replica identities at a cut. Every difference from
the record may mean that changes are missing: the sources then return to triggers and are copied
again; reading is never continued.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import Connection

from headrace.capture.cut import OpenCut
from headrace.capture.recopy_reasons import Captured, captured_part
from headrace.capture.wal.following import Followed, Following
from headrace.capture.wal.identity import ReplicaIdentity, identities
from headrace.capture.wal.publication import Publication, read_publication
from headrace.capture.wal.slot import PLUGIN, SlotStatus, read_status
from headrace.source.table import SourceTable

Level = Literal["fine", "warning", "critical"]
# From best to worst.
LEVELS: tuple[Level, ...] = ("fine", "warning", "critical")

# Near the server's own limit, this warning may be the last before the slot is invalidated.
SAFE_SHARE = 0.2


@dataclass(frozen=True)
class Ceiling:
    """Limits in bytes: from `warning` on the user is alerted, at `critical` the slot is dropped."""

    warning: int
    critical: int

    def level(self, lag: int, safe: int | None = None) -> Level:
        """Return the level of a slot. `safe` is how much more the server lets it retain, if any.

        A server that is about to invalidate the slot is a warning whatever the limits are.
        """
        if lag >= self.critical:
            return "critical"
        if lag >= self.warning or (safe is not None and safe <= (lag + safe) * SAFE_SHARE):
            return "warning"
        return "fine"


# The setting behind each reason for invalidating a slot; older servers report no reason.
LIMITS = {
    None: "max_slot_wal_keep_size",
    "wal_removed": "max_slot_wal_keep_size",
    "idle_timeout": "idle_replication_slot_timeout",
}


@dataclass(frozen=True)
class ServerPosition:
    """Where a cut was taken: the server, its timeline, and its WAL flush position."""

    system_identifier: str
    timeline: int
    flushed: int


def reason_to_leave(
    recorded: Following,
    place: ServerPosition,
    status: SlotStatus | None,
    publication: Publication | None,
) -> str | None:
    """Return why all of the database's sources must leave WAL mode, if so (pure)."""
    if place.system_identifier != recorded.system_identifier:
        return "the database is on another server"
    if place.timeline != recorded.timeline:
        return "the server was promoted or restored"
    if place.flushed < recorded.acknowledged:
        return "the server's WAL ends before the position that was read"
    return _slot_reason(recorded, status) or _publication_reason(recorded, publication)


def reason_to_leave_source(
    source: int,
    followed: Followed,
    publication: Publication | None,
    identity: ReplicaIdentity | None,
) -> str | None:
    """Return why one source (by its oid) must leave WAL mode, if so (pure)."""
    now = None if publication is None else publication.entries.get(source)
    if now is None:
        return "the table was removed from the publication"
    if (now.oid, now.xmin) != followed.entry:
        return "the table was removed from the publication for a while"
    if not now.whole:
        return "only part of the table is published"
    if identity is None:
        return "the table was dropped"
    if identity.kind == "none":
        return identity.reason
    if (identity.kind, identity.key, identity.index) != followed.identity:
        return "the replica identity of the table was changed"
    return None


def _slot_reason(recorded: Following, status: SlotStatus | None) -> str | None:
    if status is None:
        return f"replication slot {recorded.slot} was dropped"
    if status.plugin != PLUGIN or status.database != recorded.database:
        return f"replication slot {recorded.slot} is not the one that was created"
    if status.lost:
        why = f" ({status.invalidated})" if status.invalidated else ""
        limit = LIMITS.get(status.invalidated)
        cure = "" if limit is None else f"; raise {limit}"
        return f"replication slot {recorded.slot} was invalidated by the server{why}{cure}"
    if status.confirmed is None or status.confirmed > recorded.acknowledged:
        return f"replication slot {recorded.slot} was advanced or recreated by another client"
    return None


def _publication_reason(recorded: Following, publication: Publication | None) -> str | None:
    if publication is None:
        return "the publication was dropped"
    if publication.oid != recorded.publication_oid:
        return "the publication was dropped and recreated"
    changed = publication.xmin != recorded.publication_xmin
    if changed or not publication.complete or publication.all_tables:
        return "the options of the publication were changed"
    return None


@dataclass(frozen=True)
class SlotState:
    """The publication and identities of one snapshot, and the slot as it is now."""

    place: ServerPosition
    status: SlotStatus | None
    publication: Publication | None
    identities: Mapping[int, ReplicaIdentity]

    def reasons(
        self, following: Following, sources: Mapping[int, Followed], ceiling: Ceiling
    ) -> dict[int, str]:
        """Return the sources (by oid) that must leave WAL mode, each with the reason."""
        common = reason_to_leave(following, self.place, self.status, self.publication)
        if common is None and self.status is not None and self.status.lag is not None:
            level = ceiling.level(self.status.lag, self.status.safe)
            if level == "critical":
                megabytes = self.status.lag // 2**20
                common = f"replication slot {following.slot} held back {megabytes} MB of WAL"
        by_source = {}
        for oid, followed in sources.items():
            reason = common or reason_to_leave_source(
                oid, followed, self.publication, self.identities.get(oid)
            )
            if reason is not None:
                by_source[oid] = reason
        return by_source


def probe_slot_in(cut: OpenCut, following: Following, sources: Iterable[Captured]) -> SlotState:
    """Return the state of the slot for the sources of a cut, in its snapshot."""
    place = ServerPosition(cut.cut.system_identifier, cut.cut.timeline, cut.cut.position)
    version = cut.database.version
    return probe_slot(cut.connection, place, following, sources, cut.tables, version)


def probe_slot(
    connection: Connection[Any],
    place: ServerPosition,
    following: Following,
    sources: Iterable[Captured],
    tables: Mapping[int, SourceTable],
    version: int,
) -> SlotState:
    """Return the state of the slot for the captured columns of sources, in a connection's snapshot.

    `tables` are the sources as they are now, by oid.
    """
    parts = [captured_part(each, tables[each.oid]) for each in sources if each.oid in tables]
    return SlotState(
        place,
        read_status(connection, following.slot),
        read_publication(connection),
        identities(connection, parts, version),
    )
