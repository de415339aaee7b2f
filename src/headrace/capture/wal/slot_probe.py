"""What a cut finds of slot, publication and identities, and which sources it ends following for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from headrace.capture.cut import OpenCut
from headrace.capture.recopy_reasons import Captured, captured_part
from headrace.capture.wal.ceiling import Ceiling
from headrace.capture.wal.following import Followed, Following
from headrace.capture.wal.guard import ServerPosition, reason_to_leave, reason_to_leave_source
from headrace.capture.wal.identity import ReplicaIdentity, identities
from headrace.capture.wal.publication import Publication, read_publication
from headrace.capture.wal.slot import SlotStatus, read_status
from headrace.source.table import SourceTable


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
