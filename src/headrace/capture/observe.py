"""Observation of capture: the checks of a cut, without taking anything in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.capture.cut import open_cut
from headrace.capture.recopy_reasons import Captured
from headrace.capture.space import buffer_sizes
from headrace.capture.wal.following import Followed, Following
from headrace.capture.wal.slot import SlotStatus, read_status
from headrace.capture.wal.slot_probe import Ceiling, probe_slot_in
from headrace.source.connection import Database


@dataclass(frozen=True)
class Observed:
    """The state of capture of the sources of one database, by oid.

    `buffers` are bytes that change buffers take up; `recopy_reasons` are the sources that the next
    cut will copy again, `leaving` those that it will no longer read from the WAL, each with the
    reason.
    """

    buffers: Mapping[int, int] = field(default_factory=dict)
    slot: SlotStatus | None = None
    recopy_reasons: Mapping[int, str] = field(default_factory=dict)
    leaving: Mapping[int, str] = field(default_factory=dict)


def observe(
    database: Database,
    sources: Sequence[Captured],
    followed: Mapping[int, Followed],
    following: Following | None,
    ceiling: Ceiling,
    previous: str | None = None,
) -> Observed:
    """Return the state of all sources of a database; `followed` are those read from the WAL.

    Raises the errors of a cut.
    """
    oids = [source.oid for source in sources]
    with open_cut(database, sources, followed=followed.keys(), previous=previous) as cut:
        buffers = buffer_sizes(cut.connection, oids)
        if following is None:
            return Observed(buffers, recopy_reasons=cut.recopy_reasons)
        slot_state = probe_slot_in(cut, following, sources)
        reasons = slot_state.reasons(following, followed, ceiling)
        return Observed(buffers, slot_state.status, cut.recopy_reasons, reasons)


def observe_sizes(database: Database, oids: Collection[int], slot: str | None) -> Observed:
    """Return only the backlogs: the sizes of the sources' buffers, and the state of a slot."""
    with database.session() as connection:
        return Observed(
            buffer_sizes(connection, oids), None if slot is None else read_status(connection, slot)
        )
