"""From triggers to the slot at an ordinary cut: every committed row once, by one of them."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import psycopg
import pytest

from headrace.capture.wal.publication import add_to_publication
from headrace.source.connection import Database
from tests.capture.wal.following import Hand, buffered

pytestmark = pytest.mark.postgres

Session = psycopg.Connection[Any]
WRITERS = 5
TABLE = "CREATE TABLE t (id integer, amount integer); ALTER TABLE t REPLICA IDENTITY FULL"


class Writer(threading.Thread):
    """Writes in all ways in which a transaction can end, until it is stopped."""

    def __init__(self, dsn: str, seed: int) -> None:
        super().__init__(name=f"writer-{seed}")
        self.dsn = dsn
        self.seed = seed
        self.random = random.Random(seed)
        self.stopped = threading.Event()
        self.ways: set[str] = set()
        self.failure: Exception | None = None

    def run(self) -> None:
        ways = ("commit", "roll back", "savepoints", "prepare", "stay open")
        try:
            with psycopg.connect(self.dsn, autocommit=True) as session:
                while not self.stopped.is_set() or len(self.ways) < len(ways):
                    session.execute(f"SET synchronous_commit = {self.random.choice(['on', 'off'])}")
                    way = self.random.choice(ways)
                    session.execute("BEGIN")
                    self.write(session)
                    self.end(session, way)
                    self.ways.add(way)
        except Exception as error:  # noqa: BLE001  the test reports any error
            self.failure = error

    def end(self, session: Session, way: str) -> None:
        if way == "savepoints":
            for depth in range(3):
                session.execute(f"SAVEPOINT s{depth}")
                self.write(session)
            session.execute(f"ROLLBACK TO s{self.random.randrange(3)}")
            self.write(session)
        elif way == "stay open":
            time.sleep(self.random.uniform(0.05, 0.3))
            self.write(session)
        elif way == "prepare":
            name = f"{self.seed}-{self.random.random()}"
            session.execute(f"PREPARE TRANSACTION '{name}'")
            time.sleep(self.random.uniform(0, 0.2))
            end = self.random.choice(["COMMIT", "COMMIT", "ROLLBACK"])
            session.execute(f"{end} PREPARED '{name}'")
            return
        session.execute("ROLLBACK" if way == "roll back" else "COMMIT")

    def write(self, session: Session) -> None:
        for _ in range(self.random.randrange(1, 4)):
            row = (self.random.choice([None, 1, 2]), self.random.randrange(5))
            session.execute("INSERT INTO t VALUES (%s, %s)", row)
        some = "ARRAY(SELECT ctid FROM t LIMIT 2 OFFSET %s FOR UPDATE SKIP LOCKED)"
        change = self.random.choice(
            [
                f"DELETE FROM t WHERE ctid = ANY ({some})",
                f"UPDATE t SET amount = amount + 1, id = NULL WHERE ctid = ANY ({some})",
            ]
        )
        session.execute(change, (self.random.randrange(10),))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_committed_row_comes_once(
    dsn: str, database: Database, application: Session, slot: str, seed: int
) -> None:
    application.execute(TABLE)
    hand = Hand(database, "t", slot)
    application.execute("CREATE TABLE other (a integer PRIMARY KEY)")
    Hand(database, "other", slot).prepare()
    writers = [Writer(dsn, seed * 100 + number) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        hand.cut()
        add_to_publication(database, hand.table)
        hand.note_horizon()
        while not hand.by_slot:
            hand.cut()
        cuts = in_flight = 0
        while cuts < 10 or hand.again == 0 or hand.to_come == 0:
            hand.advances = cuts % 3 == 0  # as if acknowledgements were lost in crashes
            hand.cut()
            assert hand.snapshot is not None
            cuts += 1
            in_flight += bool(hand.snapshot.rsplit(":", 1)[1])
            assert cuts < 500
    finally:
        for writer in writers:
            writer.stopped.set()
        for writer in writers:
            writer.join()
    assert [writer.failure for writer in writers] == [None] * WRITERS
    assert in_flight > cuts / 2, "cuts are to be taken while transactions run"

    hand.advances = True
    hand.cut()
    rows = application.execute("SELECT id, amount FROM t").fetchall()
    assert hand.bag == {row: rows.count(row) for row in rows}
    assert hand.from_triggers and hand.from_slot
    assert len(hand.from_slot) == len(set(hand.from_slot))
    assert hand.from_triggers.isdisjoint(hand.from_slot)
    # A transaction that only changed what it had itself rolled back leaves nothing behind.
    assert hand.from_triggers | set(hand.from_slot) == buffered(database, hand.table.oid)


def test_a_writer_that_was_open_when_the_table_was_published(
    dsn: str, database: Database, application: Session, slot: str
) -> None:
    """It comes from the triggers; one that began later comes from the slot, decoded after it."""
    application.execute(TABLE)
    hand = Hand(database, "t", slot)
    application.execute("CREATE TABLE other (a integer PRIMARY KEY)")
    Hand(database, "other", slot).prepare()
    with psycopg.connect(dsn) as early, psycopg.connect(dsn) as late:
        early.execute("INSERT INTO t VALUES (1, 1)")
        assert add_to_publication(database, hand.table)
        hand.note_horizon()
        early.execute("INSERT INTO t VALUES (1, 2)")
        hand.cut()
        assert not hand.by_slot, "a writer from before is still open"
        late.execute("INSERT INTO t VALUES (2, 1)")
        early.execute("INSERT INTO t VALUES (1, 3)")
        early.commit()
        hand.cut()
        assert hand.by_slot
        assert hand.bag == {(1, 1): 1, (1, 2): 1, (1, 3): 1}
        late.execute("INSERT INTO t VALUES (2, 2)")
        late.commit()
    hand.cut()
    assert hand.bag == {(1, 1): 1, (1, 2): 1, (1, 3): 1, (2, 1): 1, (2, 2): 1}
    assert len(hand.from_slot) == 1


def test_prepared_transactions_come_once_after_their_commit(
    database: Database, application: Session, slot: str
) -> None:
    application.execute(TABLE)
    hand = Hand(database, "t", slot)
    hand.prepare()
    hand.cut()
    assert hand.by_slot
    for name, value in (("kept", 1), ("undone", 2)):
        application.execute("BEGIN")
        application.execute("INSERT INTO t VALUES (%s, 0)", (value,))
        application.execute(f"PREPARE TRANSACTION '{name}'")
    application.execute("INSERT INTO t VALUES (3, 0)")
    hand.cut()
    assert hand.bag == {(3, 0): 1}
    application.execute("COMMIT PREPARED 'kept'")
    application.execute("ROLLBACK PREPARED 'undone'")
    hand.cut()
    assert hand.bag == {(3, 0): 1, (1, 0): 1}
    hand.cut()
    assert hand.bag == {(3, 0): 1, (1, 0): 1}
    assert len(hand.from_slot) == 2
