"""Which session streams a log: of the address of now, no standby, and none that is waited for."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from headrace.capture.wal import stream as streams
from headrace.capture.wal import streaming_reader as streamed
from headrace.capture.wal.slot import read_status
from headrace.capture.wal.slot_reader import PeekingReader
from headrace.capture.wal.spill import Spill
from headrace.capture.wal.spool import Spool
from headrace.capture.wal.stream import Stream, ignore_changes, is_standby
from headrace.errors import Unavailable
from headrace.source.connection import Database
from tests.capture.wal.following import flushed
from tests.capture.wal.streaming import (
    CEILING,
    PATIENCE,
    Application,
    Followed,
    eventually,
    followed,
)

STANDBYS = "SELECT current_setting('synchronous_standby_names')"


@pytest.fixture
def log(
    database: Database, application: Application, slot: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Followed]:
    """Begun again at once when it has ended."""
    monkeypatch.setattr(streamed, "AGAIN_SECONDS", 0.0)
    with followed(database, application, slot) as one:
        yield one


@contextmanager
def standbys(log: Followed, names: str) -> Iterator[None]:
    """Commits wait for standbys of these names; those of this test do not."""

    def known(names: str) -> bool:
        with log.database.session() as connection:
            return connection.execute(STANDBYS).fetchone() == (names,)

    log.run("SET synchronous_commit = local")
    log.run(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'", "SELECT pg_reload_conf()")
    try:
        eventually(lambda: known(names), "reading the setting")
        yield
    finally:
        log.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        eventually(lambda: known(""), "reading the setting")


@contextmanager
def stalled(log: Followed, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Sessions are accepted, and answer nothing until the end; their processes."""
    accepted = Database.replication
    pids: list[int] = []

    def stopped(database: Database) -> psycopg.Connection[Any]:
        connection = accepted(database)
        os.kill(connection.info.backend_pid, signal.SIGSTOP)
        pids.append(connection.info.backend_pid)
        return connection

    def gone() -> bool:
        query = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY (%s)"
        return log.application.execute(query, (pids,)).fetchone() == (0,)

    monkeypatch.setattr(Database, "replication", stopped)
    try:
        yield pids
    finally:
        monkeypatch.setattr(Database, "replication", accepted)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        eventually(gone, "ending")


@pytest.mark.parametrize(
    ("setting", "name", "is_one"),
    [
        ("", "headrace", False),
        ("*", "headrace", True),
        ("FIRST 1 (one, *)", "", True),
        ("one, two", "headrace", False),
        ("one,Headrace", "headrace", True),
        ('ANY 2 (one, "head race")', "head race", True),
        ('ANY 2 (one, "head""race")', 'head"race', True),
        ('"head race"', "race", False),
    ],
)
def test_names_of_standbys(setting: str, name: str, is_one: bool) -> None:
    assert is_standby(setting, name) is is_one


@pytest.mark.postgres
def test_a_session_that_would_be_a_standby(log: Followed) -> None:
    """Commits that wait for a standby would go on by what it flushes: the log is peeked at."""
    log.keep()
    log.run("INSERT INTO t VALUES (1)")
    (first,) = log.read()
    stream = log.stream
    with standbys(log, "*"):
        log.log.acknowledge(first.end)
        eventually(lambda: stream.failure is not None, "ending")
        assert log.confirmed == log.begin, "nothing was flushed"
        log.run("INSERT INTO t VALUES (2)")
        assert log.rows() == [{(1,): 1}, {(2,): 1}]
        assert log.streamed.stream is None
        log.keep()
        begun = log.stream
        eventually(lambda: begun.failure is not None, "ending")
        assert begun.reached == 0
        log.acknowledge(first.end)
        assert log.streamed.stream is None and log.streamed.reason is not None
        assert "synchronous standby" in log.streamed.reason
    with standbys(log, "another"):
        log.keep()
        assert log.rows() == [{(2,): 1}]
        log.acknowledge(flushed(log.database))
        assert log.stream.failure is None


@pytest.mark.postgres
def test_a_database_with_another_address(dsn: str, log: Followed) -> None:
    log.keep()
    log.run("INSERT INTO t VALUES (1)")
    (first,) = log.read()
    before = log.stream
    with Database(dsn) as moved:
        log.database = moved
        assert log.log == PeekingReader(moved, log.slot, "headrace")
        assert before.failure is not None
        assert log.read() == [first]
        log.keep()
        assert log.streamed.database is moved
        assert log.read() == [first]
        assert log.stream is not before and log.stream.failure is None
        log.logs.release(log.slot)


@pytest.mark.postgres
def test_what_the_last_call_says_counts(log: Followed) -> None:
    log.keep()
    first = log.stream
    heard = threading.Semaphore(0)
    log.logs.stream(log.database, log.slot, 1 << 20, heard.release)
    assert log.stream is first and first.ceiling == 1 << 20
    log.run("INSERT INTO t VALUES (1)")
    assert heard.acquire(timeout=PATIENCE)


@pytest.mark.postgres
def test_another_session_for_another_table(log: Followed) -> None:
    """One that began before a table was read from the log may not know that it is published."""

    def keep(*tables: tuple[int, str]) -> Stream:
        log.logs.stream(log.database, log.slot, CEILING, ignore_changes, frozenset(tables))
        return log.stream

    one, other, restarted = (1, "10"), (2, "20"), (1, "30")
    first = keep(one)
    log.run("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    taken, waiting = log.read()
    assert keep(one) is first
    log.log.acknowledge(taken.end)
    second = keep(one, other)
    assert second is not first and log.streamed.reason is None
    assert log.confirmed == taken.end, "what was acknowledged was said before"
    assert log.read() == [waiting]
    assert keep(one) is second
    third = keep(restarted)
    assert third is not second
    assert log.read() == [waiting]
    assert log.stream is third and third.failure is None


@pytest.mark.postgres
def test_a_server_that_does_not_begin(log: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads meanwhile is answered by a peek."""
    for name in ("NUDGE_SECONDS", "SILENCE_SECONDS", "FREE_SECONDS"):
        monkeypatch.setattr(streamed, name, 0.2)
    log.run("INSERT INTO t VALUES (1)")
    found: list[list[dict[Any, int]]] = []
    with stalled(log, monkeypatch) as pids:
        log.keep()
        eventually(lambda: pids != [], "connecting")
        reader = threading.Thread(target=lambda: found.append(log.rows()), daemon=True)
        reader.start()
        reader.join(PATIENCE)
    assert found == [[{(1,): 1}]]
    assert log.streamed.reason == "the server sends no data"


@pytest.mark.postgres
def test_a_stream_that_nobody_reads_and_does_not_begin(
    log: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BEGIN_SECONDS", 0.2)
    with stalled(log, monkeypatch):
        log.keep()
        stream = log.stream
        eventually(lambda: stream.failure is not None, "giving up")
        assert log.log.received() is None
    assert log.streamed.reason == "the server did not start the stream within 0 s"


@pytest.mark.postgres
def test_closing_does_not_wait_for_a_connection(
    log: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is closed later, and nothing is asked of the server by then."""
    monkeypatch.setattr(streams, "END_SECONDS", 0.1)
    accepted = Database.replication
    answers = threading.Event()

    def late(database: Database) -> psycopg.Connection[Any]:
        assert answers.wait(PATIENCE)
        return accepted(database)

    monkeypatch.setattr(Database, "replication", late)
    log.keep()
    stream = log.stream
    log.logs.close(log.slot)
    assert stream.failure is None
    answers.set()
    eventually(lambda: stream.failure is not None, "ending")
    with log.database.session() as connection:
        status = read_status(connection, log.slot)
    assert status is not None and status.active_pid is None
    assert stream._waker.fileno() == -1, "it has let go by itself"


@pytest.mark.postgres
def test_a_disk_that_fails(log: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader gets an error, and a peek answers it the next time."""

    def fails(*_: object, **__: object) -> bytes:
        raise OSError("no such disk")

    spool = Spool(segment_bytes=1 << 10, memory_bytes=0)
    monkeypatch.setattr(streamed, "Stream", lambda *a, **k: Stream(*a, **k, spool=spool))
    log.keep()
    log.run("INSERT INTO t SELECT generate_series(1, 1000)")
    (large,) = log.read()
    assert spool.on_disk > 0
    monkeypatch.setattr(Spill, "read", fails)
    with pytest.raises(Unavailable) as failed:
        log.read()
    assert failed.value.code == "store-full"
    assert log.streamed.stream is None and "no such disk" in (log.streamed.reason or "")
    assert log.read() == [large]

    monkeypatch.setattr(streamed, "Stream", fails)
    log.keep()
    assert log.streamed.stream is None
    assert log.read() == [large]


@pytest.mark.postgres
def test_a_stream_that_another_thread_gives_up(
    log: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader gets the error, as from a disk that fails; a peek answers whoever waits."""
    spool = Spool(segment_bytes=1 << 10, memory_bytes=0)
    monkeypatch.setattr(streamed, "Stream", lambda *a, **k: Stream(*a, **k, spool=spool))
    log.keep()
    log.run("INSERT INTO t SELECT generate_series(1, 1000)")
    (large,) = log.read()
    batches = log.log.messages(flushed(log.database))
    next(batches)
    other = threading.Thread(target=log.streamed.release)
    other.start()
    other.join()
    with pytest.raises(Unavailable):
        list(batches)
    assert log.read() == [large]

    monkeypatch.setattr(streamed, "Stream", Stream)
    log.keep()
    waited = Stream.wait

    def given_up(stream: Stream, upto: int, seconds: float) -> bool:
        log.streamed.release()
        return waited(stream, upto, seconds)

    monkeypatch.setattr(Stream, "wait", given_up)
    assert log.log.transactions(flushed(log.database)) == (large.committed,)
