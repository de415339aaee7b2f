"""The streaming replication protocol and the small messages of pgoutput, version 1 (pure).

Frames of a replication connection:

    w   from the server: a message of the output plugin, after 24 bytes of positions and time
    k   from the server: how far it has read the WAL, and whether it requests a status
    r   to the server: what was written and flushed, and whether a keepalive is requested

A slot moves to the position that is reported as flushed, and only to that. Between two moves no
flushed position is reported, rather than an old one: a server that shuts down waits until a reader
that flushes has flushed everything, and for a reader that only writes until everything is written.
No position is reported to a server that would take the session for a synchronous standby.

A message of pgoutput begins with one letter:

    B C        begin and commit of a transaction; see `decoder`
    R          a relation: sent before its first change, and again after it was altered
    I U D      changes of rows; see `rows`
    T Y O M    truncation, type, origin, logical message: ignored

Numbers are big-endian, names end with a zero byte. Any other message, such as one of a streamed or
prepared transaction, was not requested and raises `wal-not-decodable`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

from psycopg import sql

from headrace.errors import NeedsReinit

BEGIN, COMMIT, RELATION = ord("B"), ord("C"), ord("R")
INSERT, UPDATE, DELETE = ord("I"), ord("U"), ord("D")
IGNORED = frozenset(b"TYOM")
FULL = "f"

XID = struct.Struct(">I")
POSITION = struct.Struct(">Q")

# With full identity an old row is whole; with any other it has only its key columns.
Image = Literal["old", "key", "new"]


@dataclass(frozen=True)
class RelationColumn:
    """A column at the time of the changes that follow; `key`: part of the replica identity."""

    name: str
    type_oid: int
    typmod: int
    key: bool = False


@dataclass(frozen=True)
class RelationMessage:
    """A table at the time of the changes that follow.

    For a partitioned table published through its root, all fields are the root's, `identity` too,
    although old rows follow the identity of their partition. Dropped and generated columns are left
    out.
    """

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


def not_decodable(detail: str) -> NeedsReinit:
    """Return the error for bytes that are no message of the requested protocol."""
    return NeedsReinit(
        "wal-not-decodable",
        "could not decode a change from the replication slot",
        detail=detail,
        hint="The sources are captured by triggers again, and copied again.",
    )


def xid_of(begin: bytes) -> int:
    """Return the transaction id of a begin message."""
    return int(XID.unpack_from(begin, 17)[0])


def begin_of(commit: bytes) -> int:
    """Return the start position of the commit record of a commit message."""
    return int(POSITION.unpack_from(commit, 2)[0])


def end_of(commit: bytes) -> int:
    """Return the end position of the transaction of a commit message."""
    return int(POSITION.unpack_from(commit, 10)[0])


def oid_of(relation: bytes) -> int:
    """Return the oid of the table that a relation message describes."""
    return int(XID.unpack_from(relation, 1)[0])


def parse_relation(message: bytes) -> RelationMessage:
    """Parse a relation message."""
    try:
        (oid,) = struct.unpack_from(">I", message, 1)
        schema, at = _name(message, 5)
        name, at = _name(message, at)
        identity, count = struct.unpack_from(">cH", message, at)
        at += 3
        columns = []
        for _ in range(count):
            flags = message[at]
            column, at = _name(message, at + 1)
            type_oid, typmod = struct.unpack_from(">Ii", message, at)
            at += 8
            columns.append(RelationColumn(column, type_oid, typmod, bool(flags & 1)))
        if at != len(message):
            raise ValueError(f"{len(message) - at} bytes are left over")
        # An empty schema name stands for pg_catalog.
        return RelationMessage(
            oid, schema or "pg_catalog", name, identity.decode("ascii"), tuple(columns)
        )
    except (struct.error, ValueError, IndexError) as error:
        raise not_decodable(f"A relation message is malformed: {error}.") from error


def _name(message: bytes, start: int) -> tuple[str, int]:
    """Return the name at a position, and the position after it."""
    end = message.index(b"\0", start)
    return message[start:end].decode(), end + 1


MESSAGE, KEEPALIVE = ord("w"), ord("k")
# The start of the plugin's message in its frame.
MESSAGE_AT = 25
ALIVE = struct.Struct(">cQqB")
STATUS = struct.Struct(">cQQQqB")
NOT_FLUSHED = 0
# PostgreSQL counts time from the year 2000.
FIRST_SECOND = 946_684_800

START = "START_REPLICATION SLOT {} LOGICAL 0/0 (proto_version '1', publication_names {})"


@dataclass(frozen=True)
class Keepalive:
    """The server has sent all that ends before `position`; `asks`: it requests a status now."""

    position: int
    asks: bool


def parse_keepalive(frame: bytes) -> Keepalive:
    """Parse a frame that is no message of the plugin, which must be a keepalive."""
    if len(frame) != ALIVE.size or frame[0] != KEEPALIVE:
        raise not_decodable(f"A frame begins with {frame[:1]!r} and has {len(frame)} bytes.")
    _, position, _, asks = ALIVE.unpack(frame)
    return Keepalive(position, bool(asks))


def status(written: int, flushed: int = NOT_FLUSHED, *, at: float, asks: bool = False) -> bytes:
    """Return a status frame with the positions written and flushed at a time (`time.time`).

    With `asks` the server answers with a keepalive.
    """
    microseconds = round((at - FIRST_SECOND) * 1_000_000)
    return STATUS.pack(b"r", written, flushed, NOT_FLUSHED, microseconds, asks)


def start(slot: str, publication: str) -> bytes:
    """Return the command that streams from the slot's own position, with the options of a peek."""
    names = "'" + sql.Identifier(publication).as_string().replace("'", "''") + "'"
    return START.format(sql.Identifier(slot).as_string(), names).encode()
