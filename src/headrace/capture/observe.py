"""How capture of sources stands, looked at like a cut does, without taking anything in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection, sql

from headrace.capture.cut import open_cut
from headrace.capture.recopy_reasons import Captured
from headrace.capture.wal.ceiling import Ceiling
from headrace.capture.wal.following import Followed, Following
from headrace.capture.wal.slot import SlotStatus, read_status
from headrace.capture.wal.slot_probe import look_in
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.introspect import CAPTURE_SCHEMA

BUFFERS = sql.SQL("""
SELECT s.oid, pg_table_size(b.oid) FROM unnest(%s::oid[]) AS s (oid)
JOIN pg_namespace n ON n.nspname = {schema}
JOIN pg_class b ON b.relnamespace = n.oid AND b.relname = 'buffer_' || s.oid
""").format(schema=sql.Literal(CAPTURE_SCHEMA))


@dataclass(frozen=True)
class Observed:
    """What was found of the sources of one database, by oid.

    `buffers` are bytes that change buffers take up; `dirty` are the sources that the next cut will
    copy anew, `leaving` those that it will no longer read from the log, each with the reason.
    """

    buffers: Mapping[int, int] = field(default_factory=dict)
    slot: SlotStatus | None = None
    dirty: Mapping[int, str] = field(default_factory=dict)
    leaving: Mapping[int, str] = field(default_factory=dict)


def observe(
    database: Database,
    sources: Sequence[Captured],
    followed: Mapping[int, Followed],
    following: Following | None,
    ceiling: Ceiling,
    previous: str | None = None,
) -> Observed:
    """Look at all sources of a database; `followed` are those that are read from its log.

    Raises what a cut raises.
    """
    oids = [source.oid for source in sources]
    with open_cut(database, sources, followed=followed.keys(), previous=previous) as cut:
        buffers = _buffers(cut.connection, oids)
        if following is None:
            return Observed(buffers, dirty=cut.dirty)
        look = look_in(cut, following, sources)
        reasons = look.reasons(following, followed, ceiling)
        return Observed(buffers, look.status, cut.dirty, reasons)


def observe_sizes(database: Database, oids: Collection[int], slot: str | None) -> Observed:
    """Look only at how much has piled up: in the buffers of sources, and behind a slot."""
    with database.session() as connection:
        return Observed(
            _buffers(connection, oids), None if slot is None else read_status(connection, slot)
        )


def _buffers(connection: Connection[Any], oids: Collection[int]) -> dict[int, int]:
    with translated():
        rows = connection.execute(BUFFERS, [list(oids)]).fetchall()
    # A buffer that was dropped just now is still in pg_class as this query sees it, without a size.
    return {oid: size for oid, size in rows if size is not None}
