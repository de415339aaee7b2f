"""A source followed first by its triggers, then by the slot, and compared with the table each time.

`Hand` does what ingest does at a cut, with bags in memory.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from headrace.capture.cut import OpenCut, flush, open_cut
from headrace.capture.setup import set_up
from headrace.capture.snapshot import Snapshot
from headrace.capture.wal.publication import PUBLICATION, add_to_publication
from headrace.capture.wal.slot import advance, create, end_on_disk
from headrace.capture.wal.slot_reader import peek
from headrace.capture.wal.visibility import belongs, released, widened
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from tests.capture.follower import Bag, bag_of, differences, read_changes, read_live
from tests.capture.wal.pgoutput import Transaction, transactions


def peeked(database: Database, slot: str, upto: int) -> list[Transaction]:
    batches = peek(database, slot, PUBLICATION, upto)
    return transactions(m for batch in batches for m in batch.column("data").to_pylist())


def flushed(database: Database) -> int:
    """The end of the log, after everything in it was written to disk."""
    flush(database)
    return end_on_disk(database)


def buffered(database: Database, oid: int) -> frozenset[int]:
    """The transactions of which the triggers recorded something."""
    query = f"SELECT DISTINCT _xid::text::bigint FROM headrace_capture.buffer_{oid}"
    with database.session() as connection:
        return frozenset(xid for (xid,) in connection.execute(query))


class Hand:
    """One table with triggers, whose changes are taken over by the slot at some cut."""

    def __init__(self, database: Database, name: str, slot: str) -> None:
        self.database = database
        self.slot = slot
        with database.session() as connection:
            self.table = find_table(connection, "public", name)
        set_up(database, self.table)
        self.bag: Bag = Counter()
        self.snapshot: str | None = None
        self.by_slot = False
        self.horizon: int | None = None
        self.advances = True
        self.from_triggers: set[int] = set()
        self.from_slot: list[int] = []
        self.again = self.to_come = 0
        with open_cut(database, []) as cut:
            assert bag_of(read_live(database, cut, self.table)) == {}
            self.snapshot = cut.cut.snapshot

    def prepare(self) -> None:
        """Publication, slot, and the horizon of the first cut that may hand over."""
        add_to_publication(self.database, self.table)
        self.position = create(self.database, self.slot)
        self.note_horizon()

    def note_horizon(self) -> None:
        with self.database.session() as connection:
            row = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())").fetchone()
        assert row is not None
        self.horizon = int(row[0])

    def cut(self) -> None:
        """One cut: changes from where they come from now, and the table in the same snapshot."""
        with open_cut(self.database, []) as cut:
            if self.by_slot:
                self._take_from_slot(cut)
            else:
                self._take_from_triggers(cut)
            live = bag_of(read_live(self.database, cut, self.table))
            assert self.bag == live, differences(self.bag, live)
            self.snapshot = cut.cut.snapshot

    def _add(self, rows: Counter[Any]) -> None:
        self.bag.update(rows)
        self.bag = Counter({row: count for row, count in self.bag.items() if count})

    def _take_from_triggers(self, cut: OpenCut) -> None:
        upto = cut.cut.snapshot
        self._add(bag_of(read_changes(self.database, self.table, self.snapshot, upto)))
        # Buffers are never emptied here: at the end they have all that was ever written.
        seen = Snapshot.read(upto)
        self.from_triggers = {
            xid for xid in buffered(self.database, self.table.oid) if seen.sees(xid)
        }
        xmin = int(upto.split(":")[0])
        self.by_slot = self.horizon is not None and xmin >= self.horizon

    def _take_from_slot(self, cut: OpenCut) -> None:
        assert self.snapshot is not None
        before, now = Snapshot.read(self.snapshot), Snapshot.read(cut.cut.snapshot)
        upto = flushed(self.database)
        decoded = peeked(self.database, self.slot, upto)
        for one in decoded:
            wide = widened(one.xid, now)
            if belongs(one.xid, before, now):
                self.from_slot.append(wide)
                self._add(one.rows[self.table.oid])
            else:
                self.again += before.sees(wide)
                self.to_come += not now.sees(wide)
        position = released([one.committed for one in decoded], now, upto)
        if self.advances and position is not None:
            self.position = advance(self.database, self.slot, position)
