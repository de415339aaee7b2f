"""What only a stream does: decode once, survive what ends it, and acknowledge only as asked."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from headrace.capture.wal import streaming_reader as streamed
from headrace.capture.wal.slot import drop, read_status
from headrace.capture.wal.spool import Spool
from headrace.capture.wal.stream import Stream
from headrace.embedded import EmbeddedServer
from headrace.errors import NeedsReinit, Transient
from headrace.source import connection as connections
from headrace.source.connection import Database
from tests.capture.wal.following import flushed
from tests.capture.wal.other_consumer import streaming
from tests.capture.wal.streaming import CEILING, Application, Followed, eventually, followed

pytestmark = pytest.mark.postgres


@pytest.fixture
def log(
    database: Database, application: Application, slot: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Followed]:
    """Begun again at once when it has ended."""
    monkeypatch.setattr(streamed, "AGAIN_SECONDS", 0.0)
    with followed(database, application, slot) as one:
        yield one


def active_pid(log: Followed) -> int | None:
    with log.database.session() as connection:
        found = read_status(connection, log.slot)
    assert found is not None
    return found.active_pid


def cut_session(log: Followed) -> None:
    """An administrator ends the session, and waits until the server has: it holds the slot."""
    stream = log.stream
    eventually(lambda: stream.reached > 0, "streaming")
    ended = log.application.execute("SELECT pg_terminate_backend(%s, 30000)", (stream.pid,))
    assert ended.fetchone() == (True,)
    eventually(lambda: stream.failure is not None, "noticing")


def test_everything_is_decoded_once(dsn: str, log: Followed) -> None:
    """Also while an open transaction keeps the slot from moving, which makes each peek longer."""
    with psycopg.connect(dsn) as long:
        long.execute("INSERT INTO t VALUES (0)")
        for n in range(5):
            log.run(f"INSERT INTO t VALUES ({n})")
        assert len(log.read()) == 5
        before = log.decoded
        assert len(log.read()) == 5
        assert log.decoded >= before + 5, "a peek decodes all of it again"
        log.keep()
        assert len(log.read()) == 5
        before = log.decoded
        for n in range(5):
            log.run(f"INSERT INTO t VALUES ({n})")
            upto = flushed(log.database)
            for _ in range(3):
                assert len(log.read(upto)) == 6 + n
        # Forcing the log to disk is a transaction, too.
        assert log.decoded == before + 2 * 5
        log.acknowledge(log.read()[3].end)
        long.commit()
        assert len(log.read()) == 7
    assert log.stream.failure is None


def test_the_slot_moves_to_what_was_acknowledged_only(
    log: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the server asks. It ends a session that does not answer within half a second."""
    monkeypatch.setitem(connections.REPLICATION, "wal_sender_timeout", "500ms")
    answered = "SELECT reply_time - backend_start > '2 s' FROM pg_stat_replication WHERE pid = %s"
    log.keep()
    log.run("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    first, second = log.read()
    stream = log.stream
    eventually(
        lambda: log.application.execute(answered, (stream.pid,)).fetchone() == (True,), "answering"
    )
    assert log.confirmed == log.begin < first.end < second.end <= stream.reached
    log.acknowledge(first.end)
    log.run("INSERT INTO t VALUES (3)")
    assert len(log.read()) == 2
    assert log.confirmed == first.end
    assert log.stream is stream and stream.failure is None


def test_a_session_that_was_cut(log: Followed) -> None:
    """What it brought is forgotten, peeked at, and sent again to the next session."""
    log.keep()
    log.run("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    first, second = log.read()
    log.acknowledge(first.end)
    cut_session(log)
    log.run("INSERT INTO t VALUES (3)")
    assert log.rows() == [{(2,): 1}, {(3,): 1}]
    assert log.streamed.stream is None and log.streamed.reason is not None
    assert "terminating connection" in log.streamed.reason
    log.acknowledge(second.end)
    log.keep()
    assert log.rows() == [{(3,): 1}]
    assert log.stream.reached > 0
    log.keep()
    assert log.streamed.reason is None


def test_a_slot_that_was_dropped(log: Followed) -> None:
    log.keep()
    log.run("INSERT INTO t VALUES (1)")
    assert len(log.read()) == 1
    upto = flushed(log.database)
    cut_session(log)
    log.run(f"SELECT pg_drop_replication_slot('{log.slot}')")
    for _ in range(2):
        for act in (
            lambda: list(log.log.messages(upto)),
            lambda: log.log.transactions(upto),
            lambda: log.log.acknowledge(upto),
        ):
            with pytest.raises(NeedsReinit) as lost:
                act()
            assert lost.value.code == "slot-lost"
        log.keep()


def test_a_slot_that_somebody_else_reads(dsn: str, log: Followed) -> None:
    """A stream is not begun; when the slot is free again, it is."""
    log.run("INSERT INTO t VALUES (1)")
    with streaming(dsn, log.application, log.slot) as pid:
        log.keep()
        stream = log.stream
        eventually(lambda: stream.failure is not None, "refusal")
        assert stream.failure is not None and stream.failure.code == "slot-busy"
        with pytest.raises(Transient) as busy:
            log.log.transactions(flushed(log.database))
        assert busy.value.code == "slot-busy" and str(pid) in str(busy.value)
    assert log.rows() == [{(1,): 1}]
    assert log.streamed.reason is not None and str(pid) in log.streamed.reason
    log.keep()
    assert log.rows() == [{(1,): 1}]
    assert log.stream.failure is None


def test_a_server_that_refuses_to_stream(
    log: Followed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As without a free WAL sender, or with a pooler: peeked at, and the reason is logged once."""

    def refused(database: Database) -> psycopg.Connection[Any]:
        return database._open(make_conninfo(database.conninfo, user="nobody_at_all"))

    accepted = Database.replication
    monkeypatch.setattr(Database, "replication", refused)
    for n in range(3):
        log.run(f"INSERT INTO t VALUES ({n})")
        log.keep()
        assert len(log.read()) == n + 1
    assert log.streamed.reason is not None and "nobody_at_all" in log.streamed.reason
    records = [one for one in caplog.records if one.getMessage() == "could not stream the WAL"]
    assert len(records) == 1
    log.acknowledge(flushed(log.database))
    monkeypatch.setattr(Database, "replication", accepted)
    log.run("INSERT INTO t VALUES (9)")
    log.keep()
    assert log.rows() == [{(9,): 1}]
    assert log.stream.failure is None


def test_a_server_that_is_silent(log: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it for ever."""
    log.keep()
    log.run("INSERT INTO t VALUES (1)")
    assert len(log.read()) == 1
    for name in ("NUDGE_SECONDS", "SILENCE_SECONDS", "FREE_SECONDS"):
        monkeypatch.setattr(streamed, name, 0.2)
    pid = log.stream.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        log.run("INSERT INTO t VALUES (2)")
        with pytest.raises(Transient) as busy:
            log.read()
        assert busy.value.code == "slot-busy"
        assert log.streamed.reason == "the server sends no data"
    finally:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: active_pid(log) is None, "letting go")
    assert log.rows() == [{(1,): 1}, {(2,): 1}]


def test_a_large_transaction_in_little_memory(log: Followed) -> None:
    spool = Spool(segment_bytes=1 << 16, memory_bytes=1 << 18)
    stream = Stream(log.database, log.slot, "headrace", ceiling=CEILING, spool=spool)
    try:
        log.run("INSERT INTO t SELECT generate_series(1, 30000)", "INSERT INTO t VALUES (0)")
        assert stream.wait(flushed(log.database), 60)
        large, small = spool.transactions(stream.reached)
        assert spool.in_memory <= 1 << 18 < spool.on_disk
        batches = list(spool.messages(stream.reached))
        assert max(batch.nbytes for batch in batches) < 1 << 19
        assert sum(map(len, batches)) == 30000 + 1 + 2 * 2 + 1
        stream.acknowledge(large.end)
        assert spool.on_disk == 0
        assert spool.transactions(stream.reached) == (small,)
    finally:
        stream.close()


def test_more_than_may_be_kept(log: Followed) -> None:
    """It is peeked at, and streamed again once it is taken in."""
    log.keep(ceiling=1 << 18)
    stream = log.stream
    log.run("INSERT INTO t SELECT generate_series(1, 30000)")
    assert sum(len(rows) for one in log.read() for rows in one.rows.values()) == 30000
    assert stream.failure is not None and stream.failure.code == "store-full"
    assert log.streamed.stream is None
    log.acknowledge(flushed(log.database))
    log.run("INSERT INTO t VALUES (1)")
    log.keep(ceiling=1 << 18)
    assert log.rows() == [{(1,): 1}]
    assert log.stream is not stream


def test_who_waits_hears_of_the_first_transaction(log: Followed) -> None:
    heard = threading.Semaphore(0)
    stream = log.logs.stream(log.database, log.slot, CEILING, heard.release).stream
    assert stream is not None
    for n in range(3):
        before = log.log.received()
        log.run(f"INSERT INTO t VALUES ({n})")
        assert heard.acquire(timeout=60)
        reached = log.log.received()
        assert before is not None and reached is not None and reached > before
        assert len(log.log.transactions(reached)) == n + 1
    log.run("INSERT INTO u VALUES (1)")
    assert stream.wait(flushed(log.database), 60)
    assert not heard.acquire(blocking=False), "nothing of a published table"


def test_a_log_that_is_released(log: Followed) -> None:
    """The slot is free at once, so that it can be dropped; what was acknowledged has arrived."""
    log.keep()
    log.run("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    first, _ = log.read()
    log.log.acknowledge(first.end)
    log.logs.release(log.slot)
    assert log.confirmed == first.end
    assert log.rows() == [{(2,): 1}]
    log.keep()
    assert log.rows() == [{(2,): 1}]
    log.logs.release(log.slot)
    assert drop(log.database, log.slot)
    log.logs.release(log.slot)


def test_a_server_that_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for nothing that is not acknowledged; started again, it goes on from there."""
    monkeypatch.setattr(streamed, "AGAIN_SECONDS", 0.0)
    with EmbeddedServer.open(tmp_path) as server, Database(server.dsn) as database:
        with psycopg.connect(server.dsn, autocommit=True) as application:
            keeper = followed(database, application, "headrace_stopped")
            log = keeper.__enter__()
            log.keep()
            log.run("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
            first, _ = log.read()
            log.acknowledge(first.end)
            stream = log.stream
        postmaster = int((tmp_path / "pg/data/postmaster.pid").read_text().split("\n")[0])
        os.kill(postmaster, signal.SIGINT)
        eventually(lambda: not Path(f"/proc/{postmaster}").exists(), "shutting down")
        eventually(lambda: stream.failure is not None, "noticing")
        with (
            EmbeddedServer.open(tmp_path) as again,
            psycopg.connect(again.dsn, autocommit=True) as application,
        ):
            log.application = application
            log.run("INSERT INTO t VALUES (3)")
            assert log.rows() == [{(2,): 1}, {(3,): 1}]
            assert log.confirmed == first.end
            log.keep()
            assert log.rows() == [{(2,): 1}, {(3,): 1}]
            assert log.stream is not stream
            keeper.__exit__(None, None, None)
