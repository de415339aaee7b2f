"""While epochs are published over a diamond, no reader sees two of them mixed.

Money goes from the left half of a bank to the right half and back, a number in each account counts
its transfers. Each half is a stream table, both meet in a third. Only if all three are of one epoch
is no money missing, and only then were there as many transfers on the left as on the right.
"""

from __future__ import annotations

import logging
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import headrace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e
logger = logging.getLogger(__name__)

EPOCHS = int(os.environ.get("HEADRACE_EPOCHS", "6"))
POSTGRES_READS, SPARK_READS = 25 * EPOCHS, (EPOCHS + 1) // 2
# Publishing goes on until every reader has read so often, but not without end.
MOST_EPOCHS = 20 * EPOCHS
ACCOUNTS, KEYS, BALANCE = 24, 4, 100
TOTAL = ACCOUNTS * BALANCE

HALF = (
    "SELECT k, sum(balance)::bigint AS balance, sum(transfers)::bigint AS transfers"
    " FROM accounts WHERE side = '{}' GROUP BY k"
)
TABLES = {
    "lefts": HALF.format("l"),
    "rights": HALF.format("r"),
    "pairs": "SELECT a.k, a.balance AS l, b.balance AS r, a.transfers + b.transfers AS transfers"
    " FROM lefts a JOIN rights b ON a.k = b.k",
}
SUMS = {
    "lefts": "SELECT sum(balance)::bigint, sum(transfers)::bigint FROM lefts",
    "rights": "SELECT sum(balance)::bigint, sum(transfers)::bigint FROM rights",
    "pairs": "SELECT sum(l)::bigint, sum(r)::bigint, sum(transfers)::bigint FROM pairs",
}
AT_ONCE = "SELECT * FROM ({lefts}) a, ({rights}) b, ({pairs}) c".format(**SUMS)

Sums = tuple[int, ...]
"""Balance and transfers of the left and of the right half, then both balances and all transfers."""


def is_one_world(sums: Sums) -> bool:
    """Whether a read is of one epoch."""
    left, done_left, right, done_right, l_, r, done = sums
    return (
        left + right == TOTAL
        and done_left == done_right
        and (left, right, done_left + done_right) == (l_, r, done)
    )


class Reader(threading.Thread):
    """Reads until it is stopped, and keeps the reads that are not of one epoch."""

    # Seconds between two reads, so that what publishes has processors left.
    pause = 0.005

    def __init__(self, name: str, wanted: int, stop: threading.Event) -> None:
        super().__init__(name=name)
        self.wanted, self.stop = wanted, stop
        self.reads = 0
        self.mixed: list[Sums] = []
        self.seen: set[int] = set()
        self.failure: BaseException | None = None

    @property
    def has_enough(self) -> bool:
        """Whether it read as often as it should, and many different epochs."""
        return self.reads >= self.wanted and len(self.seen) >= min(self.wanted, EPOCHS) // 2

    def run(self) -> None:
        try:
            for sums in self.read():
                self.reads += 1
                self.seen.add(sums[1])
                if not is_one_world(sums):
                    self.mixed.append(sums)
                if self.stop.wait(self.pause):
                    return
        except BaseException as error:  # noqa: BLE001  the test shows it
            self.failure = error

    @abstractmethod
    def read(self) -> Iterator[Sums]:
        """Sums, read again and again."""


class Statements(Reader):
    """READ COMMITTED: all three tables in one statement."""

    def __init__(self, dsn: str, stop: threading.Event) -> None:
        super().__init__("statements", POSTGRES_READS, stop)
        self.dsn = dsn

    def read(self) -> Iterator[Sums]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            while True:
                found = connection.execute(AT_ONCE).fetchone()
                assert found is not None
                yield found


class Transactions(Reader):
    """REPEATABLE READ: a statement for each table, and one for what the catalog says."""

    def __init__(self, dsn: str, stop: threading.Event) -> None:
        super().__init__("transactions", POSTGRES_READS, stop)
        self.dsn = dsn

    def read(self) -> Iterator[Sums]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            while True:
                with connection.transaction():
                    found: tuple[Any, ...] = ()
                    for query in SUMS.values():
                        row = connection.execute(query).fetchone()
                        assert row is not None
                        found += row
                    epochs = connection.execute(
                        "SELECT count(DISTINCT epoch) FROM headrace.status"
                    ).fetchone()
                assert epochs == (1,)
                yield found


class Frames(Reader):
    """Spark: frames of one pinned state, computed one after the other."""

    pause = 0.2

    def __init__(self, open_: Callable[[], headrace.Headrace], stop: threading.Event) -> None:
        super().__init__("frames", SPARK_READS, stop)
        self.open = open_

    def read(self) -> Iterator[Sums]:
        with self.open() as hr:
            while True:
                pinned = hr.at()
                found: tuple[Any, ...] = ()
                for name, columns in (
                    ("pairs", ("l", "r", "transfers")),
                    ("rights", ("balance", "transfers")),
                    ("lefts", ("balance", "transfers")),
                ):
                    sums = [f"sum({column})" for column in columns]
                    found = (*pinned.table(name).selectExpr(*sums).collect()[0], *found)
                yield found


@pytest.fixture
def bank(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute(
        "CREATE TABLE accounts (id int PRIMARY KEY, side text NOT NULL, k int NOT NULL,"
        " balance bigint NOT NULL, transfers bigint NOT NULL)"
    )
    sql.execute(
        "INSERT INTO accounts SELECT i, CASE WHEN i %% 2 = 0 THEN 'l' ELSE 'r' END,"
        " (i / 2) %% %s, %s, 0 FROM generate_series(0, %s) i",
        [KEYS, BALANCE, ACCOUNTS - 1],
    )
    project.create_stream_tables(TABLES)
    assert {one.name for one in project.diamond_groups() if one.atomic} == {
        f"public.{name}" for name in TABLES
    }
    return project


def transfer(sql: psycopg.Connection, random: Random) -> None:
    """Move money between an account on the left, an even one, and one on the right."""
    left, amount = 2 * random.randrange(ACCOUNTS // 2), random.randint(-50, 50)
    right = 2 * random.randrange(ACCOUNTS // 2) + 1
    with sql.transaction():
        for account, change in ((left, -amount), (right, amount)):
            sql.execute(
                "UPDATE accounts SET balance = balance + %s, transfers = transfers + 1"
                " WHERE id = %s",
                [change, account],
            )


def test_no_reader_sees_two_epochs(
    bank: headrace.Headrace,
    sql: psycopg.Connection,
    dsn: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    stop = threading.Event()
    readers: list[Reader] = [
        Statements(dsn, stop),
        Transactions(dsn, stop),
        Frames(lambda: headrace.connect(dsn=dsn, home=tmp_path, spark=spark), stop),
    ]
    random = Random(7)
    published: set[int] = set()
    for reader in readers:
        reader.start()
    try:
        while len(published) < EPOCHS or not all(one.has_enough for one in readers):
            assert len(published) < MOST_EPOCHS
            assert all(one.failure is None for one in readers)
            for _ in range(random.randint(1, 3)):
                transfer(sql, random)
            published.add(bank.refresh("pairs").epoch)
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    for reader in readers:
        if reader.failure is not None:
            raise reader.failure
        logger.info("%s: %d reads of %d epochs", reader.name, reader.reads, len(reader.seen))
        assert reader.mixed == [], reader.name
    receipt = bank.verify("pairs", source=True)
    assert receipt.equal, receipt.detail


def test_a_read_of_two_epochs_is_noticed(bank: headrace.Headrace, sql: psycopg.Connection) -> None:
    """What a reader without a snapshot may see: one table before a publish, the others after."""

    def sums() -> list[Sums]:
        return [sql.execute(query).fetchone() or () for query in SUMS.values()]

    before = sums()
    transfer(sql, Random(1))
    bank.refresh("pairs")
    after = sums()
    for old in range(3):
        mixed = [before[one] if one == old else after[one] for one in range(3)]
        assert not is_one_world(tuple(value for row in mixed for value in row))
    for read in (before, after):
        assert is_one_world(tuple(value for row in read for value in row))
