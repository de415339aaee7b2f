"""PROBE"""

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
# From the best to the worst.
LEVELS: tuple[Level, ...] = ("fine", "warning", "critical")

# Near the server's own limit there may be no second chance to tell.
SAFE_SHARE = 0.2


@dataclass(frozen=True)
class Ceiling:
    """Bytes of log behind the slot: from `warning` on we tell, from `critical` on we let go."""

    warning: int
    critical: int

    def level(self, lag: int, safe: int | None = None) -> Level:
        """Where a slot stands. `safe` is what the server still lets it hold back, if it limits.

        A server that is about to invalidate the slot is a warning whatever our own limits say.
        """
        if lag >= self.critical:
            return "critical"
        if lag >= self.warning or (safe is not None and safe <= (lag + safe) * SAFE_SHARE):
            return "warning"
        return "fine"


# The setting by which a server gives up slots for a reason; older servers give no reason.
LIMITS = {
    None: "max_slot_wal_keep_size",
    "wal_removed": "max_slot_wal_keep_size",
    "idle_timeout": "idle_replication_slot_timeout",
}


@dataclass(frozen=True)
class ServerPosition:
    """Where a cut was taken: the server, its timeline, and how far its log was written."""

    system_identifier: str
    timeline: int
    flushed: int


def reason_to_leave(
    recorded: Following,
    place: ServerPosition,
    status: SlotStatus | None,
    publication: Publication | None,
) -> str | None:
    """Why none of the database's sources can be followed by the slot any more."""
    if place.system_identifier != recorded.system_identifier:
        return "the database is on another server"
    if place.timeline != recorded.timeline:
        return "the server was promoted or restored"
    if place.flushed < recorded.acknowledged:
        return "the server's log is behind what was read from it"
    return _slot_reason(recorded, status) or _publication_reason(recorded, publication)


def reason_to_leave_source(
    source: int, followed: Followed, found: Publication | None, identity: ReplicaIdentity | None
) -> str | None:
    """Why one source (by its oid) cannot be followed any more."""
    now = None if found is None else found.entries.get(source)
    if now is None:
        return "the table was taken out of the publication"
    if (now.oid, now.xmin) != followed.entry:
        return "the table was taken out of the publication for a while"
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
        return f"replication slot {recorded.slot} is not the one that was made"
    if status.lost:
        why = f" ({status.invalidated})" if status.invalidated else ""
        limit = LIMITS.get(status.invalidated)
        cure = "" if limit is None else f"; raise {limit}"
        return f"replication slot {recorded.slot} was invalidated by the server{why}{cure}"
    if status.confirmed is None or status.confirmed > recorded.acknowledged:
        return f"replication slot {recorded.slot} was advanced or made anew by somebody else"
    return None


def _publication_reason(recorded: Following, found: Publication | None) -> str | None:
    if found is None:
        return "the publication was dropped"
    if found.oid != recorded.publication_oid:
        return "the publication was dropped and made anew"
    if found.xmin != recorded.publication_xmin or not found.complete or found.all_tables:
        return "the options of the publication were changed"
    return None


@dataclass(frozen=True)
class SlotState:
    """Publication and identities are those of one snapshot, the slot is as it is now."""

    place: ServerPosition
    status: SlotStatus | None
    publication: Publication | None
    identities: Mapping[int, ReplicaIdentity]

    def reasons(
        self, following: Following, sources: Mapping[int, Followed], ceiling: Ceiling
    ) -> dict[int, str]:
        """The sources (by oid) that cannot be followed any more, each with the reason."""
        everyone = reason_to_leave(following, self.place, self.status, self.publication)
        if everyone is None and self.status is not None and self.status.lag is not None:
            level = ceiling.level(self.status.lag, self.status.safe)
            if level == "critical":
                megabytes = self.status.lag // 2**20
                everyone = f"replication slot {following.slot} held back {megabytes} MB of log"
        found = {}
        for oid, followed in sources.items():
            reason = everyone or reason_to_leave_source(
                oid, followed, self.publication, self.identities.get(oid)
            )
            if reason is not None:
                found[oid] = reason
        return found


def look_in(cut: OpenCut, following: Following, sources: Iterable[Captured]) -> SlotState:
    """Look at what concerns the sources of a cut, in its snapshot."""
    place = ServerPosition(cut.cut.system_identifier, cut.cut.timeline, cut.cut.position)
    version = cut.database.version
    return look_at(cut.connection, place, following, sources, cut.tables, version)


def look_at(
    connection: Connection[Any],
    place: ServerPosition,
    following: Following,
    sources: Iterable[Captured],
    tables: Mapping[int, SourceTable],
    version: int,
) -> SlotState:
    """Look at what concerns the captured columns of sources, in the snapshot of a connection.

    `tables` are the sources as they are now, by oid.
    """
    parts = [captured_part(one, tables[one.oid]) for one in sources if one.oid in tables]
    return SlotState(
        place,
        read_status(connection, following.slot),
        read_publication(connection),
        identities(connection, parts, version),
    )
