"""Money that moves between four tables, whatever happens to the transactions that move it.

`cash` and `debts` have no key and REPLICA IDENTITY FULL, `accounts` has a primary key, `shares` is
partitioned and has one, too. Every statement of a writer is followed by one that balances it, so
that the sum over all four tables is the same in every snapshot.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

import psycopg

Session = psycopg.Connection[Any]

TABLES = """
CREATE TABLE cash (place integer, amount integer NOT NULL);
ALTER TABLE cash REPLICA IDENTITY FULL;
CREATE TABLE debts (amount integer NOT NULL, words text);
ALTER TABLE debts REPLICA IDENTITY FULL;
CREATE SEQUENCE numbers START 1000;
CREATE TABLE accounts (
    id integer PRIMARY KEY DEFAULT nextval('numbers'), amount integer NOT NULL, words text
);
ALTER TABLE accounts ALTER words SET STORAGE EXTERNAL;
CREATE TABLE shares (
    id integer DEFAULT nextval('numbers'), amount integer NOT NULL, PRIMARY KEY (id)
) PARTITION BY HASH (id);
CREATE TABLE shares_0 PARTITION OF shares FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE shares_1 PARTITION OF shares FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO cash SELECT i % 3, i % 7 FROM generate_series(1, 40) i;
INSERT INTO debts SELECT -(i % 7), 'd' || i % 4 FROM generate_series(1, 40) i;
INSERT INTO accounts SELECT i, i, repeat('w', i * 100) FROM generate_series(1, 40) i;
INSERT INTO shares SELECT i, i FROM generate_series(1, 40) i;
"""
NAMES = ("cash", "debts", "accounts", "shares")
TOTAL = "SELECT " + " + ".join(f"(SELECT sum(amount) FROM {name})" for name in NAMES)

KEYS = {"cash": "ctid", "debts": "ctid", "accounts": "id", "shares": "id"}
# Rows that nobody else holds, so that writers wait for nobody and never for each other.
SOME = "SELECT {key} FROM {name} OFFSET {place} LIMIT {count} FOR UPDATE SKIP LOCKED"
INSERTS = {
    "cash": "INSERT INTO cash VALUES (nullif({chance}, 2), {amount})",
    "debts": "INSERT INTO debts VALUES ({amount}, 'd' || {chance})",
    "accounts": "INSERT INTO accounts (amount, words) VALUES ({amount}, repeat('n', {chance}000))",
    "shares": "INSERT INTO shares (amount) VALUES ({amount})",
}
UPDATES = {
    "cash": ("place = NULL",),
    "debts": ("words = words || '+'", "words = NULL"),
    "accounts": ("id = nextval('numbers')", "words = words || '+'", "words = NULL"),
    "shares": ("id = nextval('numbers')",),
}
# How a transaction ends, and how often so. Slow ones are few: triggers are made while none is open.
WAYS = {
    "commit": 6,
    "roll back": 2,
    "savepoints": 3,
    "prepare": 2,
    "leave prepared": 1,
    "stay open": 1,
}
# Seconds between two transactions of a writer, so that cuts get their turn.
PAUSE = 0.02


class Writer(threading.Thread):
    """Moves money in all ways in which a transaction can end, until it is stopped."""

    def __init__(self, dsn: str, number: int, seed: int) -> None:
        super().__init__(name=f"writer-{number}")
        self.dsn = dsn
        self.number = number
        self.random = random.Random(f"{seed} {number}")
        self.stopped = threading.Event()
        self.ended: Counter[str] = Counter()
        self.prepared: list[tuple[float, str]] = []
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            with psycopg.connect(self.dsn, autocommit=True) as session:
                while not self.stopped.wait(PAUSE) or len(self.ended) < len(WAYS):
                    self.end_prepared(session, time.monotonic())
                    session.execute(f"SET synchronous_commit = {self.random.choice(['on', 'off'])}")
                    way = self.random.choices(list(WAYS), list(WAYS.values()))[0]
                    self.ended[self.work(session, way)] += 1
                self.end_prepared(session, float("inf"))
        except Exception as error:  # noqa: BLE001  the test reports any error
            self.failure = error

    def work(self, session: Session, way: str) -> str:
        """One transaction, and how it ended."""
        session.execute("BEGIN")
        try:
            self.move(session)
            self.end(session, way)
        except psycopg.errors.SerializationFailure:
            # Somebody moved a row to the other partition just when it was about to be locked.
            session.execute("ROLLBACK")
            return "roll back"
        return way

    def end(self, session: Session, way: str) -> None:
        if way == "savepoints":
            for depth in range(3):
                session.execute(f"SAVEPOINT s{depth}")
                self.move(session)
            session.execute(f"ROLLBACK TO s{self.random.randrange(3)}")
            self.move(session)
        elif way == "stay open":
            for _ in range(3):
                self.stopped.wait(self.random.uniform(0, 0.2))
                self.move(session)
        elif way in ("prepare", "leave prepared"):
            name = f"{self.number}-{self.random.random()}"
            session.execute(f"PREPARE TRANSACTION '{name}'")
            # Some stay until this writer has done a lot of other things.
            ends = self.random.uniform(0.1, 0.8) if way == "leave prepared" else 0
            self.prepared.append((time.monotonic() + ends, name))
            return
        session.execute("ROLLBACK" if way == "roll back" else "COMMIT")

    def end_prepared(self, session: Session, now: float) -> None:
        for moment, name in [one for one in self.prepared if one[0] <= now]:
            outcome = self.random.choice(["COMMIT", "COMMIT", "ROLLBACK"])
            session.execute(f"{outcome} PREPARED '{name}'")
            self.prepared.remove((moment, name))

    def move(self, session: Session) -> None:
        """Change one table, and another one so that the sum stays what it was."""
        chosen, other = self.random.sample(NAMES, 2)
        change = self.change(session, chosen)
        if change:
            self.insert(session, other, -change)

    def insert(self, session: Session, name: str, amount: int) -> None:
        session.execute(INSERTS[name].format(amount=amount, chance=self.random.randrange(4)))

    def change(self, session: Session, name: str) -> int:
        """One statement, and by how much it changed the sum over its table."""
        act = self.random.choice(["insert", "update", "update", "delete", "delete"])
        if act == "insert":
            amount = self.random.randrange(-9, 9)
            self.insert(session, name, amount)
            return amount
        some = SOME.format(
            key=KEYS[name],
            name=name,
            place=self.random.randrange(30),
            count=self.random.choice([1, 1, 3, 12]),
        )
        which = f"WHERE {KEYS[name]} = ANY (ARRAY({some}))"
        if act == "delete":
            gone = session.execute(f"DELETE FROM {name} {which} RETURNING amount").fetchall()
            return -sum(amount for (amount,) in gone)
        sets = self.random.choice([*UPDATES[name], "amount = amount + 1"])
        changed = session.execute(f"UPDATE {name} SET {sets} {which} RETURNING 1").fetchall()
        return len(changed) if sets.startswith("amount") else 0
