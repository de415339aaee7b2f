"""Eight writers, while four sources go from triggers to the log and back again.

Every cut is one moment of all four tables, and every committed row is taken once, by whichever of
the two has it. `HEADRACE_ROUNDS` says how often all sources go there and back and `HEADRACE_SEEDS`
how many seeds are tried; `make prove-capture` has more of both.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.catalog.records import CaptureMode
from headrace.ingest.attempts import CaptureAttempts
from headrace.lifecycle.planned_table import TableRequest
from tests.ingest.bank import NAMES, TABLES, TOTAL, WAYS, Writer
from tests.ingest.taker import Taker, read_table
from tests.ingest.world import END_STREAMS
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

ROUNDS = int(os.environ.get("HEADRACE_ROUNDS", "3"))
SEEDS = int(os.environ.get("HEADRACE_SEEDS", "1"))
FIRST = int(os.environ.get("HEADRACE_FIRST", "0"))
# Seeds that failed once.
KEPT: tuple[int, ...] = ()
WRITERS = 8
# In each mode, before the next one.
CUTS = 4
# So many cuts without reaching what is waited for mean that it is never reached.
PATIENCE = 400
QUERY = " UNION ALL ".join(f"SELECT amount FROM {name}" for name in NAMES)
AMOUNTS = {"cash": 1, "debts": 0, "accounts": 1, "shares": 1}
DROP_SLOT = """
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
WHERE database = current_database()
"""
TRIGGER, TRANSITIONING, WAL = CaptureMode.TRIGGER, CaptureMode.TRANSITIONING, CaptureMode.WAL


@contextmanager
def writing(dsn: str, seed: int) -> Iterator[list[Writer]]:
    writers = [Writer(dsn, number, seed) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        for writer in writers:
            writer.stopped.set()
        for writer in writers:
            writer.join()


class Balance:
    """Takes cuts and finds the same sum over all tables in each of them."""

    def __init__(self, taker: Taker, total: int, seed: int) -> None:
        self.taker = taker
        self.total = total
        self.random = random.Random(seed)

    def take(self) -> bool:
        taken = self.taker.take(compare=self.random.random() < 0.3)
        bags = self.taker.bags
        found = {
            name: sum(row[AMOUNTS[name]] * weight for row, weight in bags[name].items())
            for name in NAMES
        }
        assert sum(found.values()) == self.total, found
        assert all(weight > 0 for bag in bags.values() for weight in bag.values())
        for name in ("accounts", "shares"):
            assert len({row[0] for row in bags[name]}) == bags[name].total(), "a key is there twice"
        return taken

    def take_until_all_are(self, mode: CaptureMode) -> None:
        for _ in range(PATIENCE):
            if set(self.taker.modes.values()) == {mode}:
                return
            # What could not go at once is tried again without a pause.
            self.taker.engine.part(CaptureAttempts).followed_at.clear()
            self.take()
        raise AssertionError(f"not all sources became {mode}: {self.taker.state.sources}")

    def take_rows(self, way: str) -> None:
        """Some cuts, until each table had rows taken in this way."""
        before = self.taker.taken.copy()
        for number in range(PATIENCE):
            had = all(self.taker.taken[name, way] > before[name, way] for name in NAMES)
            if had and number >= CUTS:
                return
            self.take()
        raise AssertionError(f"no rows by {way}: {self.taker.taken}")


def begin_and_give_up(balance: Balance) -> None:
    """On the way to the log, and back at once, whether that was reached or not."""
    project, taker = balance.taker.project, balance.taker
    project.set("cdc_mode", "auto")
    taker.engine.part(CaptureAttempts).followed_at.clear()
    balance.take()
    project.set("cdc_mode", "trigger")
    balance.take_until_all_are(TRIGGER)


def lose_slot(balance: Balance, sql: psycopg.Connection) -> None:
    """An administrator drops the slot: all sources are copied again, by themselves."""
    dropped = False
    while not dropped:
        # A session that begins just now has it.
        sql.execute(END_STREAMS)
        with suppress(psycopg.errors.ObjectInUse):
            sql.execute(DROP_SLOT)
            dropped = True
    for _ in range(PATIENCE):
        if balance.take():
            break
    assert set(balance.taker.modes.values()) == {TRIGGER}
    assert all("was dropped" in str(one.mode_reason) for one in balance.taker.state.sources)


@pytest.mark.parametrize("streams", [False, True], ids=["peeked", "streamed"])
@pytest.mark.parametrize("seed", [*KEPT, *(FIRST + seed for seed in range(SEEDS))])
def test_every_cut_balances_in_both_modes(
    dsn: str, tmp_path: Path, seed: int, streams: bool
) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        headrace.connect(dsn, home=tmp_path) as project,
    ):
        sql.execute(TABLES)
        row = sql.execute(TOTAL).fetchone()  # type: ignore[call-overload]
        assert row is not None
        put_tables(project, TableRequest("amounts", QUERY))
        taker = Taker(project, dsn, streams=streams)
        balance = Balance(taker, row[0], seed)
        project.set("cdc_mode", "trigger")
        balance.take()
        with writing(dsn, seed) as writers:
            for number in range(ROUNDS):
                balance.take_rows("TRIGGER")
                if number == 1:
                    begin_and_give_up(balance)
                project.set("cdc_mode", "auto")
                balance.take_until_all_are(WAL)
                balance.take_rows("WAL")
                if number == 2:
                    lose_slot(balance, sql)
                project.set("cdc_mode", "trigger")
                balance.take_until_all_are(TRIGGER)
                taker.compact()
        assert [writer.failure for writer in writers] == [None] * WRITERS
        assert all(set(writer.ended) == set(WAYS) for writer in writers)
        project.set("cdc_mode", "auto")
        balance.take_until_all_are(WAL)
        balance.take()
        for source in taker.state.sources:
            assert taker.whole(source) == read_table(sql, source) == taker.bags[source.name]
        for name in NAMES:
            reached = [after for changed, _, after in taker.changes if changed == name]
            assert reached.count(WAL) > ROUNDS
            assert reached.count(TRIGGER) >= ROUNDS
            assert min(taker.taken[name, way] for way in ("TRIGGER", "WAL", "COPY")) > 0
        assert taker.compared > 0
        assert (taker.streamed > 0) is streams
