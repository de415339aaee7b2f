"""What changes rows behind the triggers is noticed in the cut that contains it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from headrace.capture import settle
from headrace.capture.cut import open_cut
from headrace.errors import Transient
from headrace.source.connection import Database
from tests.capture.follower import Follower, read_live

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]

# Statements of one transaction on t(a integer, b text), and whether t must be copied.
REWRITES: dict[str, tuple[tuple[str, ...], bool]] = {
    "truncate": (("TRUNCATE t",), True),
    "truncate and reload": (("TRUNCATE t", "INSERT INTO t VALUES (9, 'z')"), True),
    "truncate twice": (
        ("TRUNCATE t", "INSERT INTO t VALUES (8, 'y')", "TRUNCATE t", "INSERT INTO t VALUES (9)"),
        True,
    ),
    "write, then truncate": (("INSERT INTO t VALUES (9, 'z')", "TRUNCATE t"), True),
    "truncate cascade": (
        ("TRUNCATE parent RESTART IDENTITY CASCADE", "INSERT INTO parent VALUES (5)"),
        True,
    ),
    "truncate undone": (("SAVEPOINT s", "TRUNCATE t", "ROLLBACK TO s"), False),
    "retype by an expression": (("ALTER TABLE t ALTER a TYPE integer USING a * 2",), True),
    "volatile default": (("ALTER TABLE t ADD d double precision DEFAULT random()",), True),
    "constant default": (("ALTER TABLE t ADD d integer DEFAULT 5",), False),
    "unlogged": (("ALTER TABLE t SET UNLOGGED",), True),
    "triggers off and on": (
        (
            "ALTER TABLE t DISABLE TRIGGER ALL",
            "INSERT INTO t VALUES (9, 'z')",
            "ALTER TABLE t ENABLE TRIGGER ALL",
        ),
        True,
    ),
    "triggers off and always on": (
        (
            "ALTER TABLE t DISABLE TRIGGER headrace_capture_insert",
            "INSERT INTO t VALUES (9, 'z')",
            "ALTER TABLE t ENABLE ALWAYS TRIGGER headrace_capture_insert",
        ),
        True,
    ),
    "trigger dropped": (("DROP TRIGGER headrace_capture_update ON t",), True),
    "statistics and indexes": (
        ("CREATE INDEX ON t (b)", "ANALYZE t", "COMMENT ON TABLE t IS 'x'"),
        False,
    ),
}


def test_rewrites_of_a_table(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE parent (id integer PRIMARY KEY)")
    for name, (statements, copied) in REWRITES.items():
        application.execute("DROP TABLE IF EXISTS t")
        application.execute("CREATE TABLE t (a integer, b text)")
        application.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        if name == "truncate cascade":
            application.execute("INSERT INTO parent SELECT generate_series(1, 9)")
            application.execute("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES parent")
        follower = Follower(database, "t")
        follower.tick()
        with application.transaction():
            for statement in statements:
                application.execute(statement)
        tick = follower.tick()
        assert bool(tick.copied) is copied, name
        application.execute("INSERT INTO t VALUES (5, 'after')")
        assert follower.tick().copied == {}, name
        rows = application.execute("SELECT a, b FROM t").fetchall()
        assert follower.bag("t") == dict.fromkeys(rows, 1), name


PARTITION_CHANGES = (
    "TRUNCATE low",
    "TRUNCATE p",
    "ALTER TABLE p DETACH PARTITION low",
    "ALTER TABLE p ATTACH PARTITION low FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE more PARTITION OF p FOR VALUES FROM (30) TO (40)",
    "DROP TABLE more",
    "ALTER TABLE low DISABLE TRIGGER ALL; INSERT INTO low VALUES (3);"
    "ALTER TABLE low ENABLE ALWAYS TRIGGER headrace_capture_row",
)


def test_rewrites_of_partitions(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE p (a integer) PARTITION BY RANGE (a)")
    application.execute("CREATE TABLE low PARTITION OF p FOR VALUES FROM (0) TO (10)")
    application.execute("CREATE TABLE high PARTITION OF p FOR VALUES FROM (10) TO (20)")
    follower = Follower(database, "p")
    follower.tick()
    for change in PARTITION_CHANGES:
        application.execute("INSERT INTO low VALUES (1), (2)")
        application.execute("INSERT INTO high VALUES (11)")
        application.execute(change)
        tick = follower.tick()
        assert tick.copied is not None
        assert set(tick.copied) == {"p"}, change
        rows = application.execute("SELECT a FROM p").fetchall()
        assert follower.bag("p") == {row: rows.count(row) for row in rows}, change


def test_enum_labels(database: Database, application: Application) -> None:
    """A new label changes nothing; a renamed one changes how every row reads."""
    application.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
    application.execute("CREATE TABLE t (m mood)")
    application.execute("INSERT INTO t VALUES ('good'), ('bad')")
    follower = Follower(database, "t")
    follower.tick()
    application.execute("ALTER TYPE mood ADD VALUE 'fair' BEFORE 'bad'")
    assert follower.tick().skipped
    application.execute("INSERT INTO t VALUES ('fair')")
    assert follower.tick().copied == {}
    application.execute("ALTER TYPE mood RENAME VALUE 'good' TO 'fine'")
    assert follower.tick().copied == {"t": "a label of an enum was renamed"}
    application.execute("DELETE FROM t WHERE m = 'fine'")
    follower.tick()
    assert follower.bag("t") == {("bad",): 1, ("fair",): 1}


def test_labels_written_before_a_renaming(
    database: Database,
    application: Application,
    dsn: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A transaction that recorded the old label must end before the copy."""
    monkeypatch.setattr(settle, "ATTEMPTS", 1)
    monkeypatch.setattr(settle, "LOCK_MILLISECONDS", 50)
    application.execute("CREATE TYPE mood AS ENUM ('good')")
    application.execute("CREATE TABLE t (m mood)")
    follower = Follower(database, "t")
    follower.tick()
    with psycopg.connect(dsn) as open_writer:
        open_writer.execute("INSERT INTO t VALUES ('good')")
        application.execute("ALTER TYPE mood RENAME VALUE 'good' TO 'fine'")
        with pytest.raises(Transient) as busy:
            follower.tick()
        assert busy.value.code == "source-locked"
    follower.tick()
    assert follower.bag("t") == {("fine",): 1}


def test_a_label_renamed_while_copying(database: Database, application: Application) -> None:
    application.execute("CREATE TYPE mood AS ENUM ('good')")
    application.execute("CREATE TABLE t (m mood)")
    follower = Follower(database, "t")
    source = follower.source("t")
    with open_cut(database, [source], lock=[source.oid]) as cut:
        read_live(database, cut, cut.tables[source.oid])
        cut.confirm()
        application.execute("ALTER TYPE mood RENAME VALUE 'good' TO 'fine'")
        with pytest.raises(Transient) as interrupted:
            cut.confirm()
    assert interrupted.value.code == "cut-interrupted"


def test_a_dropped_and_recreated_table(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer)")
    follower = Follower(database, "t")
    follower.tick()
    application.execute("DROP TABLE t")
    application.execute("CREATE TABLE t (a integer)")
    source = follower.source("t")
    with open_cut(database, [source], lock=[source.oid]) as cut:
        assert cut.recopy_reasons == {source.oid: "the table was dropped"}
        assert not cut.tables


def test_becoming_an_inheritance_parent(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer)")
    follower = Follower(database, "t")
    follower.tick()
    application.execute("CREATE TABLE child () INHERITS (t)")
    with open_cut(database, [follower.source("t")]) as cut:
        (error,) = cut.forbidden.values()
        assert error.code == "unsupported-source"
        assert not cut.recopy_reasons, "its rows are not read"
