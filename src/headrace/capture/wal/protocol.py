"""What is said over a replication connection, apart from the messages themselves (pure).

    w   from the server: a message of the output plugin, after 24 bytes of positions and time
    k   from the server: how far it has read the log, and whether it wants to hear of us
    r   from us: what was written and flushed, and whether we want to hear of the server

A slot moves to what is said to be flushed, and only to that. Between two moves nothing is said to
be flushed, which is different from too little: a server that shuts down waits until a reader that
flushes has flushed everything. Of a reader that only writes it asks that everything was written.
Where the server would take us for a synchronous standby nothing is said at all; see `standby`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from psycopg import sql

from headrace.capture.wal.messages import not_decodable

MESSAGE, KEEPALIVE = ord("w"), ord("k")
# Where the plugin's message begins in its frame.
MESSAGE_AT = 25
ALIVE = struct.Struct(">cQqB")
STATUS = struct.Struct(">cQQQqB")
NOT_FLUSHED = 0
# PostgreSQL counts time from the year 2000.
FIRST_SECOND = 946_684_800

START = "START_REPLICATION SLOT {} LOGICAL 0/0 (proto_version '1', publication_names {})"


@dataclass(frozen=True)
class Keepalive:
    """All that ends before `position` of the log was sent; `asks` wants a status at once."""

    position: int
    asks: bool


def parse_keepalive(frame: bytes) -> Keepalive:
    """Read a frame that is no message of the plugin: then it has to be a keepalive."""
    if len(frame) != ALIVE.size or frame[0] != KEEPALIVE:
        raise not_decodable(f"A frame begins with {frame[:1]!r} and has {len(frame)} bytes.")
    _, position, _, asks = ALIVE.unpack(frame)
    return Keepalive(position, bool(asks))


def status(written: int, flushed: int = NOT_FLUSHED, *, at: float, asks: bool = False) -> bytes:
    """A frame that tells how far we are at a time, in seconds as `time.time` counts them.

    With `asks` the server answers with a keepalive.
    """
    microseconds = round((at - FIRST_SECOND) * 1_000_000)
    return STATUS.pack(b"r", written, flushed, NOT_FLUSHED, microseconds, asks)


def start(slot: str, publication: str) -> bytes:
    """The command that begins at the slot's own position, with the same options as a peek."""
    names = "'" + sql.Identifier(publication).as_string().replace("'", "''") + "'"
    return START.format(sql.Identifier(slot).as_string(), names).encode()
