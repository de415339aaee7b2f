"""The small messages of pgoutput (protocol version 1), and the error for all that is unlike them.

Every message begins with one letter:

    B C        begin and commit of a transaction; see `transactions`
    R          a relation: sent before its first change, and again after it was altered
    I U D      changes of rows; see `rows`
    T Y O M    truncation, type, origin, logical message: nothing that is taken from here

Numbers are big-endian, names end with a zero byte. Anything else, such as a message of a streamed
or prepared transaction, was not asked for and raises `wal-not-decodable`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

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
