"""pgoutput messages made by hand: what a server would send, without one."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

from headrace.capture.wal.protocol import RelationMessage


class Unchanged:
    """In place of a value that the server does not send."""


UNCHANGED = Unchanged()
Value = str | bytes | None | Unchanged
Row = Sequence[Value]


def begin(xid: int, commit_lsn: int) -> bytes:
    return b"B" + struct.pack(">QqI", commit_lsn, 0, xid)


def commit(commit_lsn: int, end_lsn: int) -> bytes:
    return b"C" + struct.pack(">BQQq", 0, commit_lsn, end_lsn, 0)


def relation(described: RelationMessage) -> bytes:
    columns = b"".join(
        bytes([column.key])
        + column.name.encode()
        + b"\0"
        + struct.pack(">Ii", column.type_oid, column.typmod)
        for column in described.columns
    )
    schema = "" if described.schema == "pg_catalog" else described.schema
    return (
        b"R"
        + struct.pack(">I", described.oid)
        + schema.encode()
        + b"\0"
        + described.name.encode()
        + b"\0"
        + described.identity.encode()
        + struct.pack(">H", len(described.columns))
        + columns
    )


def insert(oid: int, row: Row) -> bytes:
    return b"I" + struct.pack(">I", oid) + b"N" + _row(row)


def update(oid: int, row: Row, old: Row | None = None, tag: bytes = b"O") -> bytes:
    before = b"" if old is None else tag + _row(old)
    return b"U" + struct.pack(">I", oid) + before + b"N" + _row(row)


def delete(oid: int, old: Row, tag: bytes = b"O") -> bytes:
    return b"D" + struct.pack(">I", oid) + tag + _row(old)


def batch(*messages: bytes) -> pa.Array:
    return pa.array(messages, pa.binary())


def _row(row: Row) -> bytes:
    return struct.pack(">H", len(row)) + b"".join(map(_value, row))


def _value(value: Value) -> bytes:
    if value is None:
        return b"n"
    if isinstance(value, Unchanged):
        return b"u"
    encoded = value.encode() if isinstance(value, str) else value
    return b"t" + struct.pack(">I", len(encoded)) + encoded
