"""Eight writers while the tables are refreshed: every committed row is seen exactly once."""

from __future__ import annotations

import threading
import time
from random import Random

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
WRITERS, SECONDS = 8, 12.0


class Rollback(Exception):
    """Thrown to roll a transaction back."""


class Writer(threading.Thread):
    """Moves money between accounts in transactions of every kind; the total never changes."""

    def __init__(self, dsn: str, number: int, until: float) -> None:
        super().__init__(name=f"writer-{number}")
        self.dsn, self.number, self.until = dsn, number, until
        self.random = Random(number)
        self.failures: list[psycopg.Error] = []
        self.committed = 0

    def run(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            while time.monotonic() < self.until:
                try:
                    self.transact(connection)
                except Rollback:
                    continue
                except psycopg.Error as error:
                    self.failures.append(error)
                    return

    def transact(self, connection: psycopg.Connection) -> None:
        kind = self.random.choice(["plain", "rollback", "savepoint", "long", "prepared", "async"])
        if kind == "prepared":
            self.prepare(connection)
            return
        with connection.transaction():
            if kind == "async":
                connection.execute("SET LOCAL synchronous_commit = off")
            self.transfer(connection)
            if kind == "savepoint":
                try:
                    with connection.transaction():
                        connection.execute("INSERT INTO ledger VALUES (999, 999, 'undone')")
                        raise Rollback
                except Rollback:
                    self.transfer(connection)
            if kind == "long":
                time.sleep(self.random.uniform(0.1, 1.5))
            if kind == "rollback":
                raise Rollback
        self.committed += 1

    def prepare(self, connection: psycopg.Connection) -> None:
        name = f"t{self.number}_{self.random.random()}"
        connection.execute("BEGIN")
        self.transfer(connection)
        connection.execute(f"PREPARE TRANSACTION '{name}'")
        time.sleep(self.random.uniform(0.0, 0.8))
        if self.random.random() < 0.7:
            connection.execute(f"COMMIT PREPARED '{name}'")
            self.committed += 1
        else:
            connection.execute(f"ROLLBACK PREPARED '{name}'")

    def transfer(self, connection: psycopg.Connection) -> None:
        """Both tables are written in one transaction: what leaves one arrives in the other."""
        account, amount = self.random.randint(0, 5), self.random.randint(1, 9)
        connection.execute("INSERT INTO ledger VALUES (%s, %s, NULL)", (account, -amount))
        connection.execute("INSERT INTO vault VALUES (%s, %s)", (account, amount))
        if self.random.random() < 0.3:
            connection.execute(
                "UPDATE vault SET account = account WHERE ctid IN"
                " (SELECT ctid FROM vault WHERE account = %s LIMIT 3 FOR UPDATE SKIP LOCKED)",
                (account,),
            )
        if self.random.random() < 0.2:
            connection.execute(
                "WITH gone AS (DELETE FROM vault WHERE ctid IN (SELECT ctid FROM vault"
                " WHERE account = %s LIMIT 2 FOR UPDATE SKIP LOCKED) RETURNING amount)"
                " INSERT INTO ledger SELECT -1, amount, 'returned' FROM gone",
                (account,),
            )


def test_every_committed_row_exactly_once(
    project: headrace.Headrace, sql: psycopg.Connection, dsn: str
) -> None:
    sql.execute("CREATE TABLE ledger (account int, amount int, note text)")
    sql.execute("CREATE TABLE vault (account int, amount int)")
    # Together they are always zero: a cut that splits a transaction shows at once.
    project.create_stream_table(
        "ledger_sum", "SELECT coalesce(sum(amount), 0) AS s, count(*) AS n FROM ledger"
    )
    project.create_stream_table("vault_rows", "SELECT account, amount FROM vault")
    project.create_stream_table(
        "by_account", "SELECT account, sum(amount) AS s, count(*) AS n FROM vault GROUP BY account"
    )
    until = time.monotonic() + SECONDS
    writers = [Writer(dsn, number, until) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    rounds = 0
    while any(writer.is_alive() for writer in writers):
        if rounds == 3:
            sql.execute("ALTER TABLE ledger ALTER note TYPE varchar(40)")
        if rounds == 6:
            sql.execute("ALTER TABLE ledger RENAME COLUMN note TO remark")
        for name in ("ledger_sum", "vault_rows", "by_account"):
            try:
                project.refresh(name)
            except headrace.Transient:
                continue
        rounds += 1
    for writer in writers:
        writer.join()
    assert [writer.failures for writer in writers] == [[]] * WRITERS
    assert sum(writer.committed for writer in writers) > 50
    assert rounds > 3
    for name in ("ledger_sum", "vault_rows", "by_account"):
        project.refresh(name)
        assert_served(project, sql, name)
        receipt = project.verify(name, source=True)
        assert receipt.equal, receipt.detail
    total = sql.execute(
        "SELECT (SELECT s FROM ledger_sum) + (SELECT coalesce(sum(s), 0) FROM by_account)"
    ).fetchone()
    assert total == (0,)
