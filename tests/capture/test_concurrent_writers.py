"""Cuts while eight sessions write: every committed row once, and both tables at one moment."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from headrace.source.connection import Database
from tests.capture.follower import Bag, Follower

pytestmark = pytest.mark.postgres

WRITERS = 8
SECONDS = 8.0
CUT_SECONDS = 0.05

Session = psycopg.Connection[Any]


class Writer(threading.Thread):
    """Writes `entries` and `totals` in one transaction, so that their sums are equal."""

    def __init__(self, dsn: str, number: int, until: float) -> None:
        super().__init__(name=f"writer-{number}")
        self.dsn = dsn
        self.random = random.Random(number)
        self.number = number
        self.until = until
        self.ended = {"committed": 0, "rolled back": 0}
        self.failure: Exception | None = None

    def run(self) -> None:
        ways = (
            self.commit,
            self.commit,
            self.roll_back,
            self.use_savepoints,
            self.prepare,
            self.stay_open,
        )
        try:
            with psycopg.connect(self.dsn) as session:
                session.autocommit = True
                while time.monotonic() < self.until:
                    session.execute(f"SET synchronous_commit = {self.random.choice(['on', 'off'])}")
                    way: Callable[[Session], bool] = self.random.choice(ways)
                    session.execute("BEGIN")
                    self.ended["committed" if way(session) else "rolled back"] += 1
        except Exception as error:  # noqa: BLE001  the test reports any error
            self.failure = error

    def commit(self, session: Session) -> bool:
        self.write(session)
        session.execute("COMMIT")
        return True

    def roll_back(self, session: Session) -> bool:
        self.write(session)
        session.execute("ROLLBACK")
        return False

    def use_savepoints(self, session: Session) -> bool:
        self.write(session)
        for depth in range(3):
            session.execute(f"SAVEPOINT s{depth}")
            self.write(session)
        session.execute(f"ROLLBACK TO s{self.random.randrange(3)}")
        self.write(session)
        session.execute("COMMIT")
        return True

    def prepare(self, session: Session) -> bool:
        name = f"'{self.number}-{self.random.random()}'"
        self.write(session)
        session.execute(f"PREPARE TRANSACTION {name}")
        time.sleep(self.random.uniform(0, 0.4))
        commits = self.random.random() < 0.6
        session.execute(f"{'COMMIT' if commits else 'ROLLBACK'} PREPARED {name}")
        return commits

    def stay_open(self, session: Session) -> bool:
        self.write(session)
        time.sleep(self.random.uniform(0.2, 0.8))
        self.write(session)
        session.execute("COMMIT")
        return True

    def write(self, session: Session) -> None:
        """Some rows into both tables, some out of or changed in the one without a key."""
        total = 0
        for _ in range(self.random.randrange(1, 4)):
            label, amount = self.random.choice([None, 1, 2]), self.random.randrange(5)
            session.execute("INSERT INTO entries VALUES (%s, %s)", (label, amount))
            total += amount
        if self.random.random() < 0.5:
            some = "SELECT ctid FROM entries LIMIT 3 OFFSET %s FOR UPDATE SKIP LOCKED"
            place = self.random.randrange(20)
            change = self.random.choice(
                [
                    f"DELETE FROM entries WHERE ctid = ANY (ARRAY({some})) RETURNING -amount",
                    "UPDATE entries SET amount = amount + 1, label = NULL"
                    f" WHERE ctid = ANY (ARRAY({some})) RETURNING 1",
                ]
            )
            total += sum(n for (n,) in session.execute(change, (place,)))
        session.execute("INSERT INTO totals (amount) VALUES (%s)", (total,))


def test_every_committed_row_once(
    dsn: str, database: Database, application: psycopg.Connection[Any]
) -> None:
    application.execute("CREATE TABLE entries (label integer, amount integer)")
    application.execute(
        "CREATE TABLE totals (id bigint GENERATED ALWAYS AS IDENTITY (CACHE 20) PRIMARY KEY,"
        " amount integer)"
    )
    follower = Follower(database, "entries", "totals")
    follower.tick()
    follower.acknowledges_every = 3  # as if some acknowledgements were lost in crashes
    until = time.monotonic() + SECONDS
    writers = [Writer(dsn, number, until) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    cuts = in_flight = 0
    while any(writer.is_alive() for writer in writers):
        tick = follower.tick()
        if not tick.skipped:
            cuts += 1
            assert tick.copied == {}
            assert sum_of(follower.bag("entries")) == sum_of(follower.bag("totals"))
            assert follower.snapshot is not None
            in_flight += bool(follower.snapshot.rsplit(":", 1)[1])
        time.sleep(CUT_SECONDS)
    for writer in writers:
        writer.join()
    assert [writer.failure for writer in writers] == [None] * WRITERS
    assert cuts > 5
    assert in_flight > cuts / 2, "cuts are to be taken while transactions run"
    assert all(min(writer.ended.values()) > 0 for writer in writers)

    follower.acknowledges_every = 1
    application.execute("INSERT INTO entries VALUES (9, 9)")
    assert follower.tick().copied == {}
    for name in ("entries", "totals"):
        rows = application.execute(f"SELECT * FROM {name}").fetchall()
        assert follower.bag(name) == {row: rows.count(row) for row in rows}
        buffer = f"headrace_capture.buffer_{follower.oids[name]}"
        assert application.execute(f"SELECT count(*) FROM {buffer}").fetchone() == (0,)


def sum_of(bag: Bag) -> int:
    return sum(int(row[-1]) * weight for row, weight in bag.items())
