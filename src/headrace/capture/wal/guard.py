"""Whether the slot still hands out what follows on what was read before: every difference counts.

Pure: what was recorded is compared with what is found at a cut. A reason means that changes may
be missing; the sources go back to triggers and are copied anew, and nothing is continued.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.capture.wal.following import Followed, Following
from headrace.capture.wal.identity import ReplicaIdentity
from headrace.capture.wal.publication import Publication
from headrace.capture.wal.slot import PLUGIN, SlotStatus

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
