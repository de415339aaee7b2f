"""PROTO"""

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

# With full identity an old row is whole; with any other only its key columns are there.
Image = Literal["old", "key", "new"]


@dataclass(frozen=True)
class RelationColumn:
    """A column as it was when the changes that follow were made; `key` is of the identity."""

    name: str
    type_oid: int
    typmod: int
    key: bool = False


@dataclass(frozen=True)
class RelationMessage:
    """A table as it was when the changes that follow were made.

    Of a partitioned table that is published through its root, everything here is the root's, also
    `identity`, although what is known of an old row follows from that of its partition. Columns
    that were dropped are left out, and so are generated ones.
    """

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


def not_decodable(detail: str) -> NeedsReinit:
    """The error for bytes that are not what pgoutput was asked for."""
    return NeedsReinit(
        "wal-not-decodable",
        "a change read from the replication slot cannot be decoded",
        detail=detail,
        hint="The sources are captured by triggers again, and copied anew.",
    )


def xid_of(begin: bytes) -> int:
    """The transaction that a message which begins with B announces."""
    return int(XID.unpack_from(begin, 17)[0])


def begin_of(commit: bytes) -> int:
    """Where in the log the record begins that a message which begins with C tells of."""
    return int(POSITION.unpack_from(commit, 2)[0])


def end_of(commit: bytes) -> int:
    """Where in the log the transaction of a message that begins with C ends."""
    return int(POSITION.unpack_from(commit, 10)[0])


def oid_of(relation: bytes) -> int:
    """The table that a message which begins with R describes."""
    return int(XID.unpack_from(relation, 1)[0])


def parse_relation(message: bytes) -> RelationMessage:
    """Read a message that begins with R."""
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
        # An empty name of a schema stands for pg_catalog.
        return RelationMessage(
            oid, schema or "pg_catalog", name, identity.decode("ascii"), tuple(columns)
        )
    except (struct.error, ValueError, IndexError) as error:
        raise not_decodable(f"A relation message is malformed: {error}.") from error


def _name(message: bytes, start: int) -> tuple[str, int]:
    """The name that starts there, and the place after it."""
    end = message.index(b"\0", start)
    return message[start:end].decode(), end + 1


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
