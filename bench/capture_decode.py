"""How many changes a second are decoded: from pgoutput's messages to typed Arrow columns.

    python -m bench.capture_decode [CHANGES=200000] [ROWS=1000]

Messages are made in memory: seven of ten changes are inserts, two updates with both rows, one is a
delete, in transactions of ROWS changes, of a table with six columns. No server and no Spark take
part, so this is the part of WAL capture that one core of ours does.
"""

from __future__ import annotations

import struct
import sys
import time
from dataclasses import dataclass

import pyarrow as pa

from headrace.capture.wal.decoder import Decoder
from headrace.capture.wal.value_decoders import stored_images
from headrace.source.table import SourceColumn, SourceTable
from headrace.types import BIGINT, INTEGER, TEXT, Type, numeric

OID = 16400
BATCH_BYTES = 16 << 20
COLUMNS = (
    SourceColumn(1, "id", "bigint", BIGINT),
    SourceColumn(2, "customer", "integer", INTEGER),
    SourceColumn(3, "amount", "numeric(12,2)", numeric(12, 2)),
    SourceColumn(4, "state", "text", TEXT),
    SourceColumn(5, "changed_at", "timestamp with time zone", Type("timestamptz")),
    SourceColumn(6, "note", "text", TEXT),
)
TABLE = SourceTable(OID, "public", "orders", COLUMNS, keys=((1,),))
STATES = ("new", "paid", "shipped", "returned")


@dataclass(frozen=True)
class Decoding:
    """What one measurement saw."""

    changes: int
    messages: int
    bytes: int
    rows: int
    seconds: float

    @property
    def rate(self) -> float:
        """Changes a second."""
        return self.changes / self.seconds


def measure(changes: int, transaction_rows: int) -> Decoding:
    """Decode that many changes once, in batches as large as ADBC's."""
    batches = _batches(_messages(changes, transaction_rows))
    started = time.perf_counter()
    decoder = Decoder()
    rows = 0
    for batch in batches:
        for images in decoder.feed(batch).images:
            rows += len(stored_images(images, TABLE))
    seconds = time.perf_counter() - started
    size = sum(batch.nbytes for batch in batches)
    return Decoding(changes, sum(map(len, batches)), size, rows, seconds)


def _messages(changes: int, transaction_rows: int) -> list[bytes]:
    messages = []
    for n in range(changes):
        if n % transaction_rows == 0:
            messages.append(b"B" + struct.pack(">QqI", n, 0, n + 3))
        if n == 0:
            messages.append(_relation())
        messages.append(_change(n))
        if n % transaction_rows == transaction_rows - 1 or n == changes - 1:
            first = n - n % transaction_rows
            messages.append(b"C" + struct.pack(">BQQq", 0, first, n + 1, 0))
    return messages


def _relation() -> bytes:
    columns = b"".join(
        b"\1" + column.name.encode() + b"\0" + struct.pack(">Ii", 25, -1) for column in COLUMNS
    )
    header = b"R" + struct.pack(">I", OID) + b"public\0orders\0f"
    return header + struct.pack(">H", len(COLUMNS)) + columns


def _change(n: int) -> bytes:
    header = struct.pack(">I", OID)
    match n % 10:
        case 0:
            return b"D" + header + b"O" + _row(n)
        case 1 | 2:
            return b"U" + header + b"O" + _row(n) + b"N" + _row(n + 1)
        case _:
            return b"I" + header + b"N" + _row(n)


def _row(n: int) -> bytes:
    moment = f"2026-01-{1 + n % 28:02} {n % 24:02}:{n % 60:02}:07.{n % 1000000:06}+00"
    values = (
        str(n),
        str(n % 10007),
        f"{n % 100000}.{n % 100:02}",
        STATES[n % 4],
        moment,
        f"a remark of some length, number {n}" if n % 3 else None,
    )
    return struct.pack(">H", len(values)) + b"".join(
        b"n" if value is None else b"t" + struct.pack(">I", len(value)) + value.encode()
        for value in values
    )


def _batches(messages: list[bytes]) -> list[pa.Array]:
    whole = pa.array(messages, pa.binary())
    count = max(1, whole.nbytes // BATCH_BYTES)
    length = -(-len(whole) // count)
    return [whole[start : start + length] for start in range(0, len(whole), length)]


def main() -> None:
    options = dict(argument.split("=", 1) for argument in sys.argv[1:])
    unknown = set(options) - {"CHANGES", "ROWS"}
    if unknown:
        sys.exit(f"error: no option {', '.join(sorted(unknown))}; there are CHANGES and ROWS")
    seen = measure(int(options.get("CHANGES", 200_000)), int(options.get("ROWS", 1_000)))
    sys.stdout.write(
        f"{seen.changes:,} changes ({seen.messages:,} messages, {seen.bytes / 2**20:.0f} MiB)"
        f" became {seen.rows:,} rows in {seen.seconds:.2f} s: {seen.rate:,.0f} changes/s\n"
    )


if __name__ == "__main__":
    main()
