"""A published table, its slot, and the log of it as a process peeks at it or streams it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa

from headrace.capture.cut import open_cut
from headrace.capture.wal.decoder import Decoder
from headrace.capture.wal.protocol import COMMIT, begin_of, end_of
from headrace.capture.wal.publication import add_to_publication
from headrace.capture.wal.slot import create, drop, read_status
from headrace.capture.wal.slot_reader import SlotReader
from headrace.capture.wal.stream import Stream
from headrace.capture.wal.streaming_reader import SlotReaders, StreamingReader
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from tests.capture.wal.following import flushed
from tests.capture.wal.pgoutput import Transaction, transactions

Application = psycopg.Connection[Any]

CEILING = 1 << 30
PAGE_BYTES, TRIES = 8192, 200
PATIENCE = 60.0
TABLES = """
CREATE TABLE t (a integer);
ALTER TABLE t REPLICA IDENTITY FULL;
CREATE TABLE u (a integer)
"""


def eventually(is_so: Callable[[], bool], what: str) -> None:
    """Wait for what a server does in its own time."""
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until, f"{what} does not happen"
        time.sleep(0.01)


@dataclass
class Followed:
    """A table `t` that is published and `u` that is not, and the log that `logs` has of them."""

    database: Database
    application: Application
    slot: str
    logs: SlotReaders
    begin: int

    @property
    def log(self) -> SlotReader:
        return self.logs.of(self.database, self.slot)

    @property
    def streamed(self) -> StreamingReader:
        log = self.log
        assert isinstance(log, StreamingReader)
        return log

    @property
    def stream(self) -> Stream:
        stream = self.streamed.stream
        assert stream is not None, self.streamed.reason
        return stream

    def keep(self, ceiling: int = CEILING) -> None:
        """What a daemon does after a cut."""
        self.logs.stream(self.database, self.slot, ceiling)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.application.execute(statement)

    def read(self, upto: int | None = None) -> list[Transaction]:
        """All that is handed out up to a position, or up to now; also by a decoder of its own."""
        upto = flushed(self.database) if upto is None else upto
        batches = list(self.log.messages(upto))
        found = transactions(message for batch in batches for message in batch.to_pylist())
        assert self.log.transactions(upto) == tuple(one.committed for one in found)
        assert self.log.transactions(upto, 1) == tuple(one.committed for one in found[:1])
        assert decoded_rows(batches) == [sum(map(_changes, one.rows.values())) for one in found]
        return found

    def rows(self) -> list[dict[Any, int]]:
        """The weighted rows of each transaction."""
        return [dict(rows) for one in self.read() for rows in one.rows.values()]

    def snapshot(self) -> str:
        with open_cut(self.database, []) as cut:
            return cut.cut.snapshot

    @property
    def confirmed(self) -> int:
        with self.database.session() as connection:
            status = read_status(connection, self.slot)
        assert status is not None and status.confirmed is not None
        return status.confirmed

    @property
    def decoded(self) -> int:
        """How many transactions the server has ever decoded for the slot."""
        query = "SELECT total_txns FROM pg_stat_replication_slots WHERE slot_name = %s"
        row = self.application.execute(query, (self.slot,)).fetchone()
        assert row is not None
        return int(row[0])

    def acknowledge(self, position: int) -> None:
        """Let go, and wait until the server knows."""
        self.log.acknowledge(position)
        eventually(lambda: self.confirmed >= position, "moving the slot")
        assert self.confirmed == position


def across_pages(log: Followed) -> tuple[int, int, int]:
    """Write to `t` until a commit lies across a page's end: where it begins, that end, its end.

    Each try fills the page up to a little more than what row and commit take.
    """
    for number in range(TRIES):
        with log.database.session() as connection:
            row = connection.execute(
                "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
            ).fetchone()
        assert row is not None
        left = PAGE_BYTES - row[0] % PAGE_BYTES
        filling = left - 96 - 8 * (number % 20)
        if filling < 0:
            filling += PAGE_BYTES
        log.run(f"SELECT pg_logical_emit_message(false, '', repeat('x', {filling}))")
        log.run(f"INSERT INTO t VALUES ({number})")
        commits = [
            message
            for batch in log.log.messages(flushed(log.database))
            for message in batch.to_pylist()
            if message[0] == COMMIT
        ]
        begin, end = begin_of(commits[-1]), end_of(commits[-1])
        page = end // PAGE_BYTES * PAGE_BYTES
        if begin < page < end and len(commits) > 1:
            return begin, page, end
    raise AssertionError("no commit lies across the end of a page")


def _changes(rows: dict[Any, int]) -> int:
    return sum(map(abs, rows.values()))


def decoded_rows(batches: list[pa.Array]) -> list[int]:
    """How many images each transaction has, by the decoder that is used in earnest."""
    decoder, counts = Decoder(), {}
    for batch in batches:
        found = decoder.feed(batch)
        for number in found.ended.number.tolist():
            counts.setdefault(number, 0)
        for images in found.images:
            for number in images.transaction.tolist():
                counts[number] = counts.get(number, 0) + 1
    return [counts[number] for number in sorted(counts)]


@contextmanager
def followed(database: Database, application: Application, slot: str) -> Iterator[Followed]:
    """The tables and the slot, which is dropped at the end."""
    application.execute(TABLES)
    with database.session() as connection:
        add_to_publication(database, find_table(connection, "public", "t"))
    one = Followed(database, application, slot, SlotReaders(), create(database, slot))
    try:
        yield one
    finally:
        one.logs.release(slot)
        drop(database, slot)
