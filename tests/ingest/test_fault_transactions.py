"""Transactions that are long, prepared, undone or large: each belongs to one cut, in every mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from headrace.capture.wal.decoder import Decoder
from headrace.catalog.records import CaptureMode
from headrace.engine.steps import CopySource, Step
from headrace.ingest import from_wal as follow
from headrace.lifecycle.planned_table import TableRequest
from tests.ingest.world import FULL, KEY, MODES, WAL, Application, World
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres
modes = pytest.mark.parametrize("mode", MODES)
wal = pytest.mark.parametrize("mode", WAL)


@pytest.fixture
def table(world: World) -> World:
    """A world with one source `t`, of two rows."""
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    world.run("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    world.follow("t")
    return world


@contextmanager
def session(world: World) -> Iterator[Application]:
    """One more session of the application, which is always in a transaction."""
    with psycopg.connect(world.dsn) as connection:
        yield connection


@modes
def test_a_writer_that_is_idle_in_its_transaction(table: World) -> None:
    with session(table) as idle:
        idle.execute("INSERT INTO t VALUES (100, 'late')")
        idle.execute("UPDATE t SET b = 'late' WHERE a = 1")
        for n in range(5):
            table.run(f"INSERT INTO t VALUES ({10 + n}, 'now')")
            assert table.follows().changed == {"t": 1}
        assert not table.cut().cut, "there is nothing that is committed"
        idle.commit()
    assert table.follows().changed == {"t": 3}
    assert not table.cut().cut


@modes
def test_a_new_long_writer_in_every_cut(table: World) -> None:
    """At each moment somebody is open who was not open at the moment before."""
    waiting: list[Application] = []
    for n in range(6):
        writer = psycopg.connect(table.dsn)
        writer.execute("INSERT INTO t VALUES (%s, 'long')", (1000 + n,))
        waiting.append(writer)
        table.run(f"INSERT INTO t VALUES ({10 + n}, 'now')")
        if n >= 2:
            with waiting.pop(0) as oldest:
                oldest.commit()
        assert table.follows().changed == {"t": 1 if n < 2 else 2}
    # The youngest ends first.
    for writer in reversed(waiting):
        with writer:
            writer.commit()
        assert table.follows().changed == {"t": 1}
    assert table.rows("t") == 14


@modes
def test_prepared_transactions(table: World) -> None:
    for name, key in (("kept", 10), ("undone", 20)):
        table.run(
            "BEGIN",
            f"INSERT INTO t VALUES ({key}, '{name}')",
            f"UPDATE t SET b = '{name}' WHERE a = {1 if name == 'kept' else 2}",
            f"PREPARE TRANSACTION '{name}'",
        )
    for n in range(3):
        table.run(f"INSERT INTO t VALUES ({100 + n}, 'meanwhile')")
        assert table.follows().changed == {"t": 1}
    table.run("ROLLBACK PREPARED 'undone'")
    assert not table.cut().cut
    table.run("COMMIT PREPARED 'kept'")
    assert table.follows().changed == {"t": 3}
    assert not table.cut().cut


@modes
def test_a_prepared_transaction_across_the_hand_over(world: World) -> None:
    """Prepared before its table was published: the cut that sees it end is of the triggers."""
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    world.follow("t")
    if world.by_log:
        world.project.set("cdc_mode", "trigger")
        assert world.cut().copied == {"t"}
    world.run("BEGIN", "INSERT INTO t VALUES (1, 'kept')", "PREPARE TRANSACTION 'kept'")
    if world.by_log:
        world.project.set("cdc_mode", "auto")
        world.project.set("wal_transition_timeout", 3600)
    world.run("INSERT INTO t VALUES (2, 'meanwhile')")
    assert world.cut().changed == {"t": 1}
    assert world.source.mode == "TRIGGER", "no slot can be made as long as it is open"
    world.run("COMMIT PREPARED 'kept'")
    assert world.cut().changed == {"t": 1}
    if world.by_log:
        world.go()
    world.run("UPDATE t SET b = 'again'")
    assert world.follows().changed == {"t": 4}


@modes
def test_savepoints_that_are_rolled_back(table: World) -> None:
    table.together(
        "INSERT INTO t VALUES (10, 'kept')",
        "SAVEPOINT one",
        "INSERT INTO t VALUES (11, 'undone')",
        "UPDATE t SET b = 'undone' WHERE a IN (1, 10)",
        "SAVEPOINT two",
        "DELETE FROM t",
        "ROLLBACK TO one",
        "UPDATE t SET b = 'changed' WHERE a = 2",
        "SAVEPOINT three",
        "INSERT INTO t VALUES (12, 'kept')",
        "RELEASE three",
    )
    assert table.follows().changed == {"t": 4}
    table.together("SAVEPOINT one", "DELETE FROM t", "ROLLBACK TO one")
    assert not table.cut().cut


@modes
def test_two_sessions_on_the_same_row(table: World) -> None:
    """Each waits for the other; with every cut between two commits the newest state is there."""
    with session(table) as one, session(table) as other:
        for n in range(3):
            one.execute("UPDATE t SET b = b || 'one' WHERE a = 1")
            other.execute("UPDATE t SET b = b || 'other' WHERE a = 2")
            one.commit()
            one.execute("INSERT INTO t VALUES (%s, 'one')", (10 + n,))
            other.execute("UPDATE t SET b = b || 'other' WHERE a = 1")
            table.follows()
            other.commit()
            one.execute("UPDATE t SET b = b || 'again', a = a + 10000 WHERE a = 2")
            table.follows()
            one.execute("UPDATE t SET a = 2 WHERE a = 10002")
            one.commit()
            table.follows()
    assert not table.cut().cut


@modes
def test_order_is_not_that_of_a_sequence(world: World) -> None:
    """With a cache, later commits have lower numbers."""
    world.run("CREATE SEQUENCE numbers CACHE 50")
    world.run("CREATE TABLE t (a bigint PRIMARY KEY DEFAULT nextval('numbers'), b text)")
    world.follow("t")
    with session(world) as one, session(world) as other:
        for writer in (one, other):
            writer.execute("INSERT INTO t (b) VALUES ('first')")
        other.commit()
        assert world.follows().changed == {"t": 1}
        one.execute("INSERT INTO t (b) VALUES ('second')")
        one.commit()
        assert world.follows().changed == {"t": 2}
        for n in range(4):
            (one if n % 2 else other).execute("INSERT INTO t (b) VALUES ('more')")
            (one if n % 2 else other).commit()
            assert world.follows().changed == {"t": 1}
    assert world.rows("t") == 7


@modes
def test_a_transaction_that_is_large_comes_whole_and_in_parts(
    table: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100,000 rows in one transaction: one cut has them, and memory never has all of them."""
    sizes: list[int] = []
    feed = Decoder.feed

    def counted(decoder: Decoder, messages: object) -> object:
        decoded = feed(decoder, messages)
        sizes.append(sum(len(images) for images in decoded.images))
        return decoded

    monkeypatch.setattr(Decoder, "feed", counted)
    table.project.set("collect_rows", 1_000_000)
    with session(table) as large:
        large.execute(
            "INSERT INTO t SELECT n, repeat(md5(n::text), 10) FROM generate_series(10, 100009) n"
        )
        table.run("UPDATE t SET b = 'meanwhile' WHERE a = 1")
        assert table.follows().changed == {"t": 2}
        large.commit()
    sizes.clear()
    assert table.follows().changed == {"t": 100_000}
    if table.by_log:
        assert sum(sizes) == 100_000
        assert max(sizes) < 50_000, "it came in several parts"
    if table.mode != KEY:
        pin = table.engine.catalog.state().relation(table.source.relation).pin
        files = table.engine.store.files(table.source.relation, pin, pin.epoch - 1, pin.epoch)
        assert max(file.rows for file in files) < 100_000, "each was written before the next came"


@wal
def test_a_large_change_by_key_is_a_copy(table: World) -> None:
    """Where old rows would have to be looked up for too many, the table is compared as a whole."""
    table.project.set("collect_rows", 1000)
    table.run("INSERT INTO t SELECT n, 'z' FROM generate_series(10, 2009) n")
    taken = table.follows(copied=table.mode != FULL)
    assert taken.copied == (frozenset() if table.mode == FULL else {"t"})
    table.run("UPDATE t SET b = 'few' WHERE a < 20")
    table.follows()


@wal
def test_a_change_by_key_of_many_bytes_is_a_copy(
    table: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few rows it has: they would all be in memory at once."""
    monkeypatch.setattr(follow, "KEYED_BYTES", 1 << 20)
    table.run("INSERT INTO t SELECT n, repeat(md5(n::text), 10000) FROM generate_series(10, 19) n")
    table.follows(copied=table.mode != FULL)
    table.run("UPDATE t SET b = 'few' WHERE a < 20")
    table.follows()


@modes
def test_a_large_transaction_that_is_rolled_back(table: World) -> None:
    """Larger than the memory of the server's decoding, which spills it or would stream it."""
    name = table.application.info.dbname
    table.run(f"ALTER DATABASE {name} SET logical_decoding_work_mem = '64kB'")
    table.engine.database.close()
    with session(table) as undone, session(table) as kept:
        for writer, start in ((undone, 10_000), (kept, 20_000)):
            writer.execute(
                "INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(%s::int, %s::int) n",
                (start, start + 4999),
            )
        kept.commit()
        undone.rollback()
    assert table.follows().changed == {"t": 5000}
    assert not table.cut().cut


@modes
def test_asynchronous_commits_are_in_the_cut_that_sees_them(table: World) -> None:
    table.run("SET synchronous_commit = off")
    for n in range(20):
        table.run(f"INSERT INTO t VALUES ({10 + n}, 'async')")
        assert table.follows().changed == {"t": 1}


# Why a table is copied: what is done before, with the slot's name.
CAUSES = {
    "rewritten": ("TRUNCATE t", "INSERT INTO t SELECT n, 'copied' FROM generate_series(1, 5) n"),
    "slot lost": ("SELECT pg_drop_replication_slot('{slot}')", "INSERT INTO t VALUES (5, 'lost')"),
}


def copy_while_others_write(world: World, early: Application) -> None:
    """The copy is of its snapshot; what is committed during it or after it comes later, once."""

    def write(when: str, step: Step) -> None:
        world.saw(when, step)
        if isinstance(step, CopySource) and when == "before":
            early.execute("INSERT INTO t VALUES (20, 'open')")
            world.run("INSERT INTO t VALUES (10, 'during')")
        elif isinstance(step, CopySource):
            world.run("UPDATE t SET b = 'during' WHERE a = 1")

    world.engine.watch = write
    before = world.live(world.source)
    assert world.take().copied == {"t"}
    assert world.stored(world.source) == before
    world.engine.watch = world.saw
    assert world.follows().changed == {"t": 3}
    early.commit()
    assert world.follows().changed == {"t": 1}
    if world.source.mode is CaptureMode.TRIGGER and world.by_log:
        world.go()
    world.run("UPDATE t SET b = 'afterwards' WHERE a IN (1, 20)")
    assert world.follows().changed == {"t": 4}


@modes
def test_a_first_copy_while_others_write(world: World) -> None:
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x')")
    if world.mode == FULL:
        world.run("ALTER TABLE t REPLICA IDENTITY FULL")
    put_tables(world.project, TableRequest("reader", "SELECT * FROM t"))
    with session(world) as early:
        copy_while_others_write(world, early)


@pytest.mark.parametrize(
    ("mode", "cause"),
    [*((mode, "rewritten") for mode in MODES), *((mode, "slot lost") for mode in WAL)],
)
def test_a_repeated_copy_while_others_write(table: World, cause: str) -> None:
    slot = table.slot if table.by_log else ""
    table.run(*(statement.format(slot=slot) for statement in CAUSES[cause]))
    with session(table) as early:
        copy_while_others_write(table, early)
