"""The slot on a real server: read again and again, advanced, busy, lost; its pending changes."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from headrace.capture.cut import open_cut
from headrace.capture.wal.availability import obstacles, read_server
from headrace.capture.wal.pending import SlotChanges, advance_idle, probe_changes
from headrace.capture.wal.publication import PUBLICATION, add_to_publication
from headrace.capture.wal.slot import advance, create, drop, read_status
from headrace.capture.wal.slot_reader import PeekingReader, peek, peek_transactions
from headrace.errors import NeedsReinit, Transient, UserError
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from tests.capture.wal.following import flushed, peeked
from tests.capture.wal.other_consumer import streaming

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]


@pytest.fixture
def position(database: Database, application: Application, slot: str) -> int:
    """A published table `t` and a slot; where that begins."""
    application.execute("CREATE TABLE t (a integer); ALTER TABLE t REPLICA IDENTITY FULL")
    application.execute("CREATE TABLE u (a integer)")
    with database.session() as connection:
        add_to_publication(database, find_table(connection, "public", "t"))
    return create(database, slot)


def snapshot_now(database: Database) -> str:
    with open_cut(database, []) as cut:
        return cut.cut.snapshot


def test_reading_does_not_consume(
    database: Database, application: Application, slot: str, position: int
) -> None:
    application.execute("INSERT INTO t VALUES (1), (2)")
    application.execute("INSERT INTO u VALUES (1)")
    application.execute("UPDATE t SET a = 3 WHERE a = 2")
    upto = flushed(database)
    first = peeked(database, slot, upto)
    assert [dict(*one.rows.values()) for one in first] == [{(1,): 1, (2,): 1}, {(2,): -1, (3,): 1}]
    assert peeked(database, slot, upto) == first
    (batch,) = peek(database, slot, PUBLICATION, upto)
    assert [str(field.type) for field in batch.schema] == ["int64", "binary"]
    assert batch.column_names == ["lsn", "data"]
    with database.session() as connection:
        found = peek_transactions(connection, slot, PUBLICATION, upto)
        assert found == tuple(one.committed for one in first)
        assert peek_transactions(connection, slot, PUBLICATION, upto, 1) == found[:1]
        status = read_status(connection, slot)
    assert status is not None
    assert (status.confirmed, status.plugin, status.active_pid) == (position, "pgoutput", None)
    assert status.lag is not None and status.lag > 0 and not status.lost

    assert advance(database, slot, first[0].end) == first[0].end
    assert peeked(database, slot, upto) == first[1:]
    assert advance(database, slot, position) == first[0].end, "it does not go back"
    assert advance(database, slot, upto) == upto
    assert peeked(database, slot, flushed(database)) == []


def test_another_consumer(
    dsn: str, database: Database, application: Application, slot: str, position: int
) -> None:
    application.execute("INSERT INTO t VALUES (1)")
    upto = flushed(database)
    with streaming(dsn, application, slot) as pid:
        with database.session() as connection:
            status = read_status(connection, slot)
        assert status is not None and status.active_pid == pid
        for act in (
            lambda: peeked(database, slot, upto),
            lambda: advance(database, slot, upto),
            lambda: drop(database, slot),
        ):
            with pytest.raises(Transient) as busy:
                act()
            assert busy.value.code == "slot-busy"
            assert str(pid) in str(busy.value)


def test_a_slot_that_is_gone(
    database: Database, application: Application, slot: str, position: int
) -> None:
    application.execute(f"SELECT pg_drop_replication_slot('{slot}')")
    upto = flushed(database)
    for act in (lambda: peeked(database, slot, upto), lambda: advance(database, slot, upto)):
        with pytest.raises(NeedsReinit) as lost:
            act()
        assert lost.value.code == "slot-lost"
    with database.session() as connection:
        assert read_status(connection, slot) is None
        log = PeekingReader(database, slot, PUBLICATION)
        assert probe_changes(connection, log, snapshot_now(database), 0).pending


def test_making_a_slot_waits_for_open_transactions(
    dsn: str, database: Database, application: Application, slot: str
) -> None:
    application.execute("CREATE TABLE t (a integer PRIMARY KEY)")
    with database.session() as connection:
        add_to_publication(database, find_table(connection, "public", "t"))
        with psycopg.connect(dsn) as writer:
            writer.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(Transient) as busy:
                create(database, slot, seconds=1)
            assert busy.value.code == "source-locked"
            assert read_status(connection, slot) is None, "nothing is left behind"
        create(database, slot)
        with pytest.raises(UserError) as twice:
            create(database, slot)
        assert twice.value.code == "capture-not-set-up"


def test_what_the_server_allows(
    dsn: str, database: Database, application: Application, slot: str
) -> None:
    with database.session() as connection:
        assert obstacles(read_server(connection, slot)) == ()
    application.execute("CREATE ROLE wal_nobody LOGIN")
    try:
        limited = psycopg.conninfo.make_conninfo(dsn, user="wal_nobody")
        with Database(limited) as other, other.session() as connection:
            (obstacle,) = obstacles(read_server(connection, slot))
            assert obstacle.remedy == 'ALTER ROLE "wal_nobody" REPLICATION;'
            with pytest.raises(UserError) as refused:
                create(other, slot)
            assert refused.value.code == "permission-denied"
            application.execute(obstacle.remedy)
            assert obstacles(read_server(connection, slot)) == ()
            create(other, slot)
            assert peeked(other, slot, flushed(database)) == []
            drop(other, slot)
    finally:
        application.execute("DROP ROLE wal_nobody")


def test_pending_changes(
    dsn: str, database: Database, application: Application, slot: str, position: int
) -> None:
    last = snapshot_now(database)
    log = PeekingReader(database, slot, PUBLICATION)
    with database.session() as connection:

        def ask(quiet: int) -> SlotChanges:
            flushed(database)
            return probe_changes(connection, log, last, quiet)

        nothing = ask(0)
        assert not nothing.pending and nothing.quiet >= position
        application.execute("INSERT INTO u VALUES (1)")
        other = ask(nothing.quiet)
        assert not other.pending and other.quiet > nothing.quiet
        assert probe_changes(connection, log, last, 2**62) == SlotChanges(False, 2**62), "not moved"
        with psycopg.connect(dsn) as writer:
            writer.execute("INSERT INTO t VALUES (1)")
            assert not ask(other.quiet).pending
            writer.commit()
        found = ask(other.quiet)
        assert found.pending and found.quiet == other.quiet, "it stays until a cut has it"
        assert ask(found.quiet).pending
        last = snapshot_now(database)
        seen = ask(found.quiet)
        assert not seen.pending and seen.quiet > found.quiet, "the cut has it, though the slot too"
        application.execute("INSERT INTO t VALUES (2)")
        assert ask(seen.quiet).pending, "behind one that the cut has"


def test_an_idle_slot_moves_on(
    database: Database, application: Application, slot: str, position: int
) -> None:
    recorded: list[int] = []
    log = PeekingReader(database, slot, PUBLICATION)

    def move(snapshot: str, idle_bytes: int = 0) -> int | None:
        flushed(database)
        return advance_idle(database, slot, log, snapshot, recorded.append, idle_bytes=idle_bytes)

    application.execute("INSERT INTO u SELECT generate_series(1, 1000)")
    last = snapshot_now(database)
    assert move(last, idle_bytes=1 << 30) is None, "it is not far behind"
    assert recorded == []
    moved = move(last)
    assert moved is not None and moved > position
    assert recorded == [moved], "recorded before"

    application.execute("INSERT INTO t VALUES (1)")
    (waiting,) = peeked(database, slot, flushed(database))
    again = move(last)
    assert again is None, "what no cut has stays"
    application.execute("INSERT INTO u VALUES (1)")
    assert move(last) is None
    assert peeked(database, slot, flushed(database)) == [waiting]
    moved = move(snapshot_now(database))
    assert moved is not None and moved >= waiting.end
    assert peeked(database, slot, flushed(database)) == []
    assert recorded[-1] == moved
