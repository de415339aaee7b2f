"""What happens to a source while it is on its way to the WAL: it is altered, its readers go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from headrace.catalog.records import CaptureMode, Status
from headrace.ingest.attempts import CaptureAttempts
from headrace.lifecycle.drop import drop
from headrace.lifecycle.planned_table import TableRequest
from tests.ingest.wal_objects import LEFT
from tests.ingest.world import KEY, World
from tests.lifecycle.made import put_tables

pytestmark = [pytest.mark.postgres, pytest.mark.parametrize("mode", [KEY])]

CAPTURED = """
SELECT tgname FROM pg_trigger WHERE tgrelid = 't'::regclass AND NOT tgisinternal
UNION ALL
SELECT relname FROM pg_class
WHERE relnamespace = to_regnamespace('headrace_capture') AND relname ~ '^buffer_'
"""


@contextmanager
def in_transition(world: World, *readers: str) -> Iterator[psycopg.Connection]:
    """A transaction from before the table was published keeps its source TRANSITIONING.

    The slot is there by then, because another source is read through it.
    """
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)", "CREATE TABLE u (a integer)")
    world.run("CREATE TABLE v (a integer PRIMARY KEY)", "INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    world.follow("v")
    put_tables(world.project, *(TableRequest(name, "SELECT a, b FROM t") for name in readers))
    assert world.cut().copied == {"t"}
    world.engine.part(CaptureAttempts).followed_at.clear()
    with psycopg.connect(world.dsn) as early:
        early.execute("INSERT INTO u VALUES (1)")
        world.run("INSERT INTO t VALUES (3, 'z')")
        assert world.cut().changed["t"] == 1
        assert world.sources["t"].mode is CaptureMode.TRANSITIONING
        yield early


def arrives(world: World) -> None:
    """The source goes on from the WAL, and follows changes from there."""
    world.run("INSERT INTO t VALUES (8, 'the last by triggers')")
    world.cut()
    source = world.sources["t"]
    assert (source.mode, source.mode_reason) == (CaptureMode.WAL, None)
    world.run("UPDATE t SET b = 'by the WAL' WHERE a = 8", "DELETE FROM t WHERE a = 9")
    world.follows()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD COLUMN c integer DEFAULT 7",
        "ALTER TABLE t ALTER COLUMN b TYPE text USING upper(b)",
        "ALTER TABLE t RENAME TO other; ALTER TABLE other RENAME TO t",
        "TRUNCATE t",
    ],
    ids=["add a column", "rewrite", "rename and back", "truncate"],
)
def test_a_table_that_is_altered(world: World, statement: str) -> None:
    """Every cut equals the table, before and after the source has arrived."""
    with in_transition(world, "reader") as early:
        world.run(*statement.split("; "), "INSERT INTO t VALUES (4, 'after')")
        world.cut()
        assert world.sources["t"].status is Status.ACTIVE
        world.run("INSERT INTO t VALUES (9, 'later')")
        world.cut()
        early.commit()
    arrives(world)


def test_a_column_that_its_reader_uses_goes(world: World) -> None:
    """The reader stops, the source goes on, and arrives without that column."""
    with in_transition(world, "reader") as early:
        world.run("ALTER TABLE t DROP COLUMN b", "INSERT INTO t VALUES (4)")
        world.cut()
        reader = world.engine.catalog.state().stream_table("public", "reader")
        assert reader is not None and reader.status is Status.SUSPENDED
        early.commit()
    world.run("INSERT INTO t VALUES (5)")
    world.cut()
    world.run("DELETE FROM t WHERE a = 5")
    world.cut()
    assert world.sources["t"].status is Status.ACTIVE


def test_its_last_reader_is_dropped(world: World) -> None:
    """Triggers, buffer and its entry in the publication go; with the last source the slot goes."""
    with in_transition(world, "reader") as early:
        drop(world.engine, "public", "reader")
        assert set(world.sources) == {"v"}
        assert world.application.execute(CAPTURED).fetchall() == []
        published = world.application.execute("SELECT tablename FROM pg_publication_tables")
        assert published.fetchall() == [("v",)]
        early.commit()
    world.run("INSERT INTO t VALUES (4, 'for nobody')", "INSERT INTO v VALUES (1)")
    assert world.follows().changed == {"v": 1}
    drop(world.engine, "public", "reader_1")
    assert world.application.execute(LEFT).fetchall() == []
    assert world.engine.catalog.state().database(1).following is None


def test_one_of_two_readers_is_dropped(world: World) -> None:
    with in_transition(world, "one", "two") as early:
        drop(world.engine, "public", "one")
        world.run("INSERT INTO t VALUES (9, 'meanwhile')")
        assert world.cut().changed["t"] == 1
        assert world.sources["t"].mode is CaptureMode.TRANSITIONING
        early.commit()
    arrives(world)
