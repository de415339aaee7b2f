"""`headrace up` is killed at any moment, again and again, while an application writes.

Whatever was going on, it is started again as it is, without a step by hand, and in the end every
stream table is what its query says. `HEADRACE_KILLS` says how often; `make prove-daemon` kills it
twenty times.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import headrace
from tests.daemon.running import Up, eventually
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
KILLS = int(os.environ.get("HEADRACE_KILLS", "2"))
SEED = int(os.environ.get("HEADRACE_SEED", "1"))
ACCOUNTS = 20
TABLES = {
    "balances": "SELECT account, sum(amount) AS balance FROM entries GROUP BY account",
    "moves": "SELECT account, count(*) AS n FROM entries GROUP BY account",
    "accounts": "SELECT b.account, b.balance, m.n FROM balances b JOIN moves m"
    " ON b.account = m.account",
    "world": "SELECT sum(balance) AS balance, sum(n) AS n FROM accounts",
}


@contextmanager
def writing(dsn: str, seed: int) -> Iterator[list[int]]:
    """Transfers between accounts, whose sum is always zero; how many were committed so far."""
    stop, done, failures = threading.Event(), [0], list[BaseException]()

    def write() -> None:
        chance = random.Random(seed)
        try:
            with psycopg.connect(dsn, autocommit=True) as sql:
                while not stop.wait(0.005):
                    giver, taker = chance.sample(range(ACCOUNTS), 2)
                    amount = chance.randint(1, 100)
                    sql.execute(
                        "INSERT INTO entries VALUES (%s, %s), (%s, %s)",
                        (giver, -amount, taker, amount),
                    )
                    if chance.random() < 0.1:
                        sql.execute(
                            "UPDATE entries SET account = %s WHERE account = %s",
                            (giver, taker),
                        )
                    done[0] += 1
        except BaseException as error:  # noqa: BLE001  the test shows it
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()
    assert failures == []


def published(sql: psycopg.Connection) -> int:
    """The newest epoch that is served; the sum over all accounts is zero in every one."""
    with sql.transaction():
        sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        balance = sql.execute("SELECT coalesce(sum(balance), 0) FROM balances").fetchone()
        joined = sql.execute("SELECT balance FROM world").fetchone()
        epoch = sql.execute("SELECT max(epoch) FROM headrace.stream_tables").fetchone()
    assert (balance, joined) == ((0,), (0,))
    assert epoch is not None
    return int(epoch[0])


def test_killed_at_any_moment_it_goes_on_exactly(dsn: str, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE entries (account int, amount int)")
        sql.execute("INSERT INTO entries SELECT i, 0 FROM generate_series(0, 19) i")
        with headrace.connect(dsn=dsn, home=tmp_path) as project:
            project.create_stream_tables(
                {name: {"query": query, "schedule": "20ms"} for name, query in TABLES.items()}
            )
        first = published(sql)
        with writing(dsn, SEED) as done:
            for number in range(KILLS):
                with Up(tmp_path, dsn) as up:
                    # Every other time it has published before; else it is killed while it starts.
                    before = published(sql)
                    if number % 2 == 0:
                        up.until(lambda before=before: published(sql) > before + 1)
                    else:
                        up.until_serving()
                    threading.Event().wait(chance.random() * 2)
                    assert up.end(signal.SIGKILL) == -signal.SIGKILL, up.said
        assert published(sql) > first
        assert done[0] > 0
        with Up(tmp_path, dsn) as up:
            count = sql.execute("SELECT count(*) FROM entries").fetchone()
            up.until(lambda: sql.execute("SELECT n FROM world").fetchone() == count)
            assert up.end() == 0, up.said
        with headrace.connect(dsn=dsn, home=tmp_path) as project:
            assert [one.status for one in project.status()] == ["ACTIVE"] * len(TABLES)
            for name in TABLES:
                assert_served(project, sql, name)
                assert project.verify(name, source=True).equal


def test_with_the_embedded_server_it_comes_back_by_itself(tmp_path: Path) -> None:
    """The server stops when its last holder dies, and is started by the next."""
    with headrace.connect(home=tmp_path) as project:
        with psycopg.connect(project.dsn, autocommit=True) as sql:
            sql.execute("CREATE TABLE entries (account int, amount int)")
        project.create_stream_table("balances", TABLES["balances"], schedule="20ms")
    with Up(tmp_path) as up:
        up.until_serving()
        assert up.end(signal.SIGKILL) == -signal.SIGKILL
    with Up(tmp_path) as up:
        up.until_serving()
        with headrace.connect(home=tmp_path) as project:
            with psycopg.connect(project.dsn, autocommit=True) as sql:
                sql.execute("INSERT INTO entries VALUES (1, 7)")
                eventually(
                    lambda: sql.execute("SELECT balance FROM balances").fetchall() == [(7,)],
                    lambda: up.said,
                )
            assert up.end() == 0, up.said
