"""One contract for a log, peeked at or streamed: all that is not acknowledged, again and again."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from headrace.capture.wal import pending
from headrace.capture.wal.pending import SlotChanges, advance_idle, probe_changes
from headrace.capture.wal.publication import add_to_publication
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from tests.capture.wal.following import flushed
from tests.capture.wal.streaming import Application, Followed, across_pages, followed

pytestmark = pytest.mark.postgres

MANY = 20_000


@pytest.fixture(params=["peeked", "streamed"])
def log(
    request: pytest.FixtureRequest, database: Database, application: Application, slot: str
) -> Iterator[Followed]:
    with followed(database, application, slot) as one:
        if request.param == "peeked":
            yield one
            return
        one.keep()
        first = one.stream
        yield one
        assert one.stream is first and first.failure is None, "it was streamed all the time"


def test_the_same_until_it_is_acknowledged(log: Followed) -> None:
    log.run("INSERT INTO t VALUES (1), (2)", "INSERT INTO u VALUES (1)")
    log.run("UPDATE t SET a = 3 WHERE a = 2")
    middle = flushed(log.database)
    log.run("DELETE FROM t WHERE a = 1")
    first = log.read()
    assert [dict(*one.rows.values()) for one in first] == [
        {(1,): 1, (2,): 1},
        {(2,): -1, (3,): 1},
        {(1,): -1},
    ]
    assert log.read() == first
    assert log.read(middle) == first[:2], "no further than asked for"
    assert log.read() == first
    assert log.confirmed == log.begin, "reading moves nothing"

    log.acknowledge(first[0].end)
    assert log.read() == first[1:]
    log.log.acknowledge(first[0].end)
    log.log.acknowledge(log.begin)
    assert log.read() == first[1:], "it does not go back"
    upto = flushed(log.database)
    log.acknowledge(upto)
    assert log.read(upto) == [] == list(log.log.messages(upto))
    log.run("INSERT INTO t VALUES (4)")
    assert log.rows() == [{(4,): 1}], "a table that was described before"


def test_a_position_inside_a_commit(log: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one is to which the log was flushed: a slot that is moved there skips the commit."""
    last = log.snapshot()
    begin, page, end = across_pages(log)
    *before, across = log.read(end)
    assert across.end == end
    assert log.read(begin) == before
    for upto in (begin + 1, page, end):
        assert log.read(upto) == [*before, across]

    def move(snapshot: str) -> int | None:
        recorded: list[int] = []
        args = (log.database, log.slot, log.log, snapshot, recorded.append)
        moved = advance_idle(*args, idle_bytes=0)
        assert recorded == ([] if moved is None else [moved])
        return moved

    log.acknowledge(before[-1].end)
    monkeypatch.setattr(pending, "_flushed", lambda _: page)
    assert move(last) is None, "no cut has it"
    moved = move(log.snapshot())
    assert moved is not None and moved >= end
    log.acknowledge(moved)
    log.run("INSERT INTO u VALUES (1)")
    monkeypatch.setattr(pending, "_flushed", lambda _: moved + 1)
    after = move(log.snapshot())
    assert after is not None and after > moved + 1, "where a record ends"


def test_only_what_is_committed(dsn: str, log: Followed) -> None:
    """In the order of commits, whatever was begun first."""
    with psycopg.connect(dsn) as long:
        long.execute("INSERT INTO t VALUES (1)")
        log.run("INSERT INTO t VALUES (2)")
        with psycopg.connect(dsn) as other:
            other.execute("INSERT INTO t VALUES (99)")
            other.rollback()
            other.execute("INSERT INTO t VALUES (3)")
            other.execute("SAVEPOINT s")
            other.execute("INSERT INTO t VALUES (98)")
            other.execute("ROLLBACK TO s")
            other.execute("SAVEPOINT s")
            other.execute("INSERT INTO t VALUES (4)")
        log.run("BEGIN", "INSERT INTO t VALUES (5)", "PREPARE TRANSACTION 'held'")
        assert log.rows() == [{(2,): 1}, {(3,): 1, (4,): 1}]
        position = log.read()[0].end
        log.acknowledge(position)
        log.run("COMMIT PREPARED 'held'")
        long.commit()
        assert log.rows() == [{(3,): 1, (4,): 1}, {(5,): 1}, {(1,): 1}]
        assert log.confirmed == position


def test_tables_that_change(log: Followed) -> None:
    """Each change comes with its table as it was then, also after a description was released."""
    log.run("INSERT INTO t VALUES (1)", "ALTER TABLE t ADD COLUMN b integer")
    log.run("INSERT INTO t VALUES (2, 2)", "ALTER TABLE t DROP COLUMN a")
    log.run("INSERT INTO t VALUES (3)")
    assert log.rows() == [{(1,): 1}, {(2, 2): 1}, {(3,): 1}]
    log.acknowledge(log.read()[1].end)
    assert log.rows() == [{(3,): 1}]
    log.acknowledge(flushed(log.database))
    log.run("INSERT INTO t VALUES (4)", "ALTER TABLE t RENAME COLUMN b TO c")
    log.run("INSERT INTO t VALUES (5)")
    assert log.rows() == [{(4,): 1}, {(5,): 1}]
    log.run("TRUNCATE t")
    assert [one.rows for one in log.read()][2:] == [{}]


def test_tables_that_come_and_go(log: Followed) -> None:
    log.run("INSERT INTO u VALUES (0)", "INSERT INTO t VALUES (1)")
    with log.database.session() as connection:
        add_to_publication(log.database, find_table(connection, "public", "u"))
    log.run("ALTER TABLE u REPLICA IDENTITY FULL", "INSERT INTO u VALUES (2)")
    assert log.rows() == [{(1,): 1}, {(2,): 1}]
    log.acknowledge(flushed(log.database))
    log.run("INSERT INTO u VALUES (3)", "ALTER PUBLICATION headrace DROP TABLE t")
    log.run("INSERT INTO t VALUES (4)", "INSERT INTO u VALUES (5)")
    assert log.rows() == [{(3,): 1}, {(5,): 1}]
    log.run("DROP TABLE t")
    assert log.rows() == [{(3,): 1}, {(5,): 1}]


def test_a_transaction_of_many_rows(log: Followed) -> None:
    log.run(f"INSERT INTO t SELECT generate_series(1, {MANY})")
    log.run("INSERT INTO t VALUES (0)")
    first, second = log.read()
    assert sum(map(len, first.rows.values())) == MANY
    assert [dict(rows) for rows in second.rows.values()] == [{(0,): 1}]


def test_pending_changes(dsn: str, log: Followed) -> None:
    last = log.snapshot()
    with log.database.session() as connection:

        def ask(quiet: int) -> SlotChanges:
            flushed(log.database)
            return probe_changes(connection, log.log, last, quiet)

        nothing = ask(0)
        assert not nothing.pending and nothing.quiet >= log.begin
        log.run("INSERT INTO u VALUES (1)")
        other = ask(nothing.quiet)
        assert not other.pending and other.quiet > nothing.quiet
        with psycopg.connect(dsn) as writer:
            writer.execute("INSERT INTO t VALUES (1)")
            assert not ask(other.quiet).pending
            writer.commit()
        found = ask(other.quiet)
        assert found.pending and found.quiet == other.quiet, "it stays until a cut has it"
        last = log.snapshot()
        seen = ask(found.quiet)
        assert not seen.pending and seen.quiet > found.quiet
        log.run("INSERT INTO t VALUES (2)")
        assert ask(seen.quiet).pending, "behind one that the cut has"


def test_an_idle_slot_moves_on(log: Followed) -> None:
    recorded: list[int] = []

    def record(position: int) -> None:
        assert log.confirmed < position, "recorded before"
        recorded.append(position)

    def move(snapshot: str) -> int | None:
        flushed(log.database)
        return advance_idle(log.database, log.slot, log.log, snapshot, record, idle_bytes=0)

    log.run("INSERT INTO u SELECT generate_series(1, 1000)")
    last = log.snapshot()
    moved = move(last)
    assert moved is not None and recorded == [moved]
    log.acknowledge(moved)
    log.run("INSERT INTO t VALUES (1)")
    (waiting,) = log.read()
    assert move(last) is None, "what no cut has stays"
    assert log.read() == [waiting]
    moved = move(log.snapshot())
    assert moved is not None and moved >= waiting.end
    assert log.read() == []
