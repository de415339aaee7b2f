"""Rows of whole integers out of pgoutput's messages, one message after another: the slow reference.

Every table of these tests is published with all of its old rows (REPLICA IDENTITY FULL).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.capture.wal.visibility import Committed

Row = tuple[int | None, ...]


@dataclass
class Transaction:
    """One transaction of the slot: per relation its rows, −1 for each old and +1 for each new."""

    xid: int
    end: int = 0
    rows: dict[int, Counter[Row]] = field(default_factory=dict)

    @property
    def committed(self) -> Committed:
        return Committed(self.xid, self.end)


def transactions(messages: Iterable[bytes]) -> list[Transaction]:
    found: list[Transaction] = []
    for message in messages:
        kind = message[:1]
        if kind == b"B":
            found.append(Transaction(struct.unpack_from(">I", message, 17)[0]))
        elif kind == b"C":
            found[-1].end = struct.unpack_from(">Q", message, 10)[0]
        elif kind in b"IUD":
            (relation,) = struct.unpack_from(">I", message, 1)
            rows = found[-1].rows.setdefault(relation, Counter())
            at = 5
            while at < len(message):
                image = message[at : at + 1]
                assert image in (b"O", b"N"), image
                row, at = _row(message, at + 1)
                rows[row] += 1 if image == b"N" else -1
    return found


def _row(message: bytes, at: int) -> tuple[Row, int]:
    (columns,) = struct.unpack_from(">H", message, at)
    at += 2
    row: list[int | None] = []
    for _ in range(columns):
        kind = message[at : at + 1]
        at += 1
        if kind == b"n":
            row.append(None)
            continue
        assert kind == b"t", kind
        (length,) = struct.unpack_from(">I", message, at)
        row.append(int(message[at + 4 : at + 4 + length]))
        at += 4 + length
    return tuple(row), at
