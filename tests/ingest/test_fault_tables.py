"""What owners do to their tables: rewritten, repartitioned, altered, dropped, in every mode.

Each is followed exactly, copied again, or stopped with the reason; and then followed again.
"""

from __future__ import annotations

import pytest

from headrace.capture.wal import identity
from headrace.catalog.records import CaptureMode, Status
from headrace.ingest.attempts import CaptureAttempts
from headrace.lifecycle import build
from headrace.lifecycle.planned_table import FIRST, TableRequest
from headrace.lifecycle.planning import plan
from headrace.lifecycle.table_spec import TableSpec
from tests.ingest.world import FULL, KEY, MODES, TRIGGER, World

pytestmark = pytest.mark.postgres
modes = pytest.mark.parametrize("mode", MODES)

BOTH = frozenset({"parent", "child"})
CHILD = frozenset({"child"})
NONE: frozenset[str] = frozenset()

# Statements of one transaction, and which of the two tables are copied for them.
TRUNCATIONS = {
    "truncate": (("TRUNCATE child",), CHILD),
    "and reload": (("TRUNCATE child", "INSERT INTO child VALUES (1, 'reloaded')"), CHILD),
    "several times": (
        (
            "INSERT INTO child VALUES (2, 'before')",
            "TRUNCATE child",
            "INSERT INTO child VALUES (3, 'between')",
            "TRUNCATE child",
            "INSERT INTO child VALUES (4, 'after')",
        ),
        CHILD,
    ),
    "cascade": (
        (
            "INSERT INTO child VALUES (5, 'before')",
            "TRUNCATE parent RESTART IDENTITY CASCADE",
            "INSERT INTO parent SELECT generate_series(1, 9)",
            "INSERT INTO child VALUES (6, 'after')",
        ),
        BOTH,
    ),
    "undone": (
        ("SAVEPOINT s", "TRUNCATE child", "ROLLBACK TO s", "INSERT INTO child VALUES (7, 'x')"),
        NONE,
    ),
}


@modes
def test_truncate(world: World) -> None:
    world.run("CREATE TABLE parent (id integer PRIMARY KEY)")
    world.run("CREATE TABLE child (id integer PRIMARY KEY REFERENCES parent, b text)")
    world.run("INSERT INTO parent SELECT generate_series(1, 9)")
    world.run("INSERT INTO child VALUES (8, 'first')")
    world.follow("parent", "child")
    for name, (statements, copied) in TRUNCATIONS.items():
        world.together(*statements)
        taken = world.follows(copied=bool(copied))
        assert taken.copied == copied, name
        world.run("INSERT INTO child VALUES (9, 'after')", "DELETE FROM child WHERE id = 9")
        world.run("UPDATE child SET b = b || '!'")
        assert world.cut().copied == NONE, name


PARTITIONED = (
    "CREATE TABLE p (a integer PRIMARY KEY, b text) PARTITION BY RANGE (a)",
    "CREATE TABLE low PARTITION OF p FOR VALUES FROM (0) TO (10)",
    # Its columns have other numbers than those of the parent.
    "CREATE TABLE high (gone integer, b text, a integer PRIMARY KEY)",
    "ALTER TABLE high DROP COLUMN gone",
    "ALTER TABLE p ATTACH PARTITION high FOR VALUES FROM (10) TO (20)",
    "INSERT INTO p SELECT n, 'first' FROM generate_series(0, 19) n",
)


@modes
def test_rows_of_partitions(world: World) -> None:
    world.run(*PARTITIONED)
    world.follow("p")
    world.run("UPDATE p SET b = 'moves' WHERE a = 3", "DELETE FROM p WHERE a IN (5, 15)")
    world.run("UPDATE p SET a = 15 WHERE a = 3", "UPDATE p SET a = 5 WHERE a = 19")
    assert world.follows().changed["p"] > 0
    world.run(
        "INSERT INTO low VALUES (3, 'leaf')",
        "UPDATE high SET b = 'leaf' WHERE a = 12",
        "DELETE FROM low WHERE a = 1",
        "INSERT INTO high (a, b) VALUES (19, 'leaf')",
    )
    world.follows()
    world.together("UPDATE p SET a = a + 10 WHERE a = 1 + 1 AND false", "DELETE FROM high")
    world.follows()
    world.run("UPDATE p SET a = a + 10")
    world.follows()


# Statements, each of which changes the rows of `p` without telling of any row.
PARTITION_CHANGES = (
    "TRUNCATE low",
    "ALTER TABLE p DETACH PARTITION low",
    "ALTER TABLE p ATTACH PARTITION low FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE more PARTITION OF p FOR VALUES FROM (30) TO (40)",
    "DROP TABLE more",
    "TRUNCATE p",
)


@modes
def test_partitions_come_and_go(world: World) -> None:
    """With rows written beside it, and alone: both are noticed."""
    world.run(*PARTITIONED)
    world.follow("p")
    for change in PARTITION_CHANGES:
        world.run("INSERT INTO low VALUES (1, 'x') ON CONFLICT DO NOTHING")
        world.cut()
        world.run(change)
        if world.mode == FULL and change.startswith("CREATE TABLE more"):
            # A new partition has the identity of its key: what is logged is not what was.
            world.falls_back("replica identity")
            world.run("ALTER TABLE more REPLICA IDENTITY FULL")
            world.go()
        else:
            assert world.follows(copied=True).copied == {"p"}, change
        world.run("UPDATE p SET b = b || '!'", "DELETE FROM high WHERE a = 14")
        world.run("INSERT INTO high (a) VALUES (14)")
        world.follows()


@modes
def test_columns_that_are_added(world: World) -> None:
    """Those that read the table keep their columns, and it is captured as before."""
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x')")
    world.follow("t")
    for n, column in enumerate(
        ("c integer", "d integer DEFAULT 5", "e integer GENERATED ALWAYS AS (a * 2) STORED")
    ):
        rewritten = "GENERATED" in column
        world.run(f"INSERT INTO t (a, b) VALUES ({10 * n + 10}, 'before')")
        world.run(f"ALTER TABLE t ADD COLUMN {column}")
        world.run(f"INSERT INTO t (a, b) VALUES ({10 * n + 11}, 'after')")
        world.run("UPDATE t SET b = b || '!'")
        world.follows(copied=rewritten)
    assert len([one for one in world.source.columns if one.type is not None]) == 2
    (reader,) = world.engine.catalog.state().stream_tables
    assert (reader.status, [one.name for one in reader.columns]) == (Status.ACTIVE, ["a", "b"])


@pytest.mark.parametrize("mode", [FULL, KEY])
def test_a_generated_column_is_not_in_the_way_of_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older servers do not publish it, which matters only where it is captured."""
    monkeypatch.setattr(identity, "GENERATED_SINCE", world.engine.database.version + 1)
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    world.follow("t")
    world.run("ALTER TABLE t ADD COLUMN e integer GENERATED ALWAYS AS (a * 2) STORED")
    world.run("INSERT INTO t VALUES (1, 'x')")
    assert world.follows(copied=True).copied == {"t"}
    world.run("UPDATE t SET b = 'y'")
    assert world.follows().changed == {"t": 2}
    world.project.set("cdc_mode", "trigger")
    assert world.cut().copied == {"t"}
    world.go()
    world.run("UPDATE t SET b = 'z'")
    assert world.follows().changed == {"t": 2}
    capture_again(world, "SELECT a, e FROM t")
    assert world.cut().copied == {"t"}
    world.engine.part(CaptureAttempts).followed_at.clear()
    world.run("UPDATE t SET b = 'by triggers'")
    assert world.cut().changed == {"t": 2}
    assert world.source.mode is CaptureMode.TRIGGER
    assert "generated columns" in (world.source.mode_reason or "")


def capture_again(world: World, query: str) -> None:
    """What is recorded first when a stream table is made of columns that are not captured yet."""
    engine = world.engine
    with engine.writing() as lease:
        work = plan(engine, engine.catalog.state(), [TableSpec(FIRST, TableRequest("more", query))])
        assert [old.name for old, _ in work.recaptured] == ["t"]
        build._capture(engine, work, work.planned_tables, lease.fence)


@modes
def test_a_column_that_is_added_and_used(world: World) -> None:
    """The source is copied with it and goes the same way again; others are followed meanwhile."""
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x')")
    world.run("CREATE TABLE u (a integer PRIMARY KEY)")
    world.follow("t", "u")
    before = world.sources["u"].mode
    world.run("ALTER TABLE t ADD COLUMN c integer DEFAULT 5", "INSERT INTO t VALUES (2, 'y', 6)")
    capture_again(world, "SELECT a, c FROM t")
    world.run("INSERT INTO u VALUES (1)", "UPDATE t SET c = 7 WHERE a = 1")
    taken = world.cut()
    assert (taken.copied, taken.changed) == ({"t"}, {"u": 1})
    assert [one.name for one in world.sources["t"].columns if one.type] == ["a", "b", "c"]
    assert world.sources["u"].mode is before
    world.run("UPDATE t SET c = c + 1", "INSERT INTO u VALUES (2)")
    if world.by_log:
        world.go()
    else:
        assert world.follows().changed == {"t": 4, "u": 1}
    world.run("UPDATE t SET c = NULL", "INSERT INTO t VALUES (3, NULL, 8)")
    assert world.follows().changed == {"t": 5, "u": 0}


@modes
@pytest.mark.parametrize(
    ("statements", "lost"),
    [
        (("ALTER TABLE t DROP COLUMN b",), "was dropped"),
        (("ALTER TABLE t RENAME COLUMN b TO c",), "was renamed to c"),
        (("ALTER TABLE t DROP COLUMN b", "ALTER TABLE t ADD COLUMN b text"), "was dropped"),
        (("ALTER TABLE t DROP COLUMN b", "ALTER TABLE t ADD COLUMN z integer"), "was dropped"),
        (("ALTER TABLE t ALTER b TYPE varchar(9)",), "changed its type"),
    ],
    ids=["drop", "rename", "drop and add the same", "drop and add another", "retype"],
)
def test_a_column_that_goes_stops_its_readers(
    world: World, statements: tuple[str, ...], lost: str
) -> None:
    """Others go on; names and types distinguish rows written before and after the change."""
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text, n integer)")
    world.run("CREATE TABLE u (a integer PRIMARY KEY)", "INSERT INTO t VALUES (1, 'x', 7)")
    world.follow("t", "u")
    world.run("INSERT INTO t VALUES (2, 'y', 8)", "INSERT INTO u VALUES (1)")
    world.run(*statements)
    world.run("INSERT INTO t (a, n) VALUES (3, 9)", "UPDATE t SET n = n + 1 WHERE a = 1")
    assert world.follows(copied=True).copied == {"t"}
    readers = {table.name: table for table in world.engine.catalog.state().stream_tables}
    assert readers["reader_2"].status is Status.ACTIVE
    assert readers["reader_1"].status is Status.SUSPENDED
    assert lost in (readers["reader_1"].reason or "")
    world.run("UPDATE t SET n = n + 1 WHERE a < 3", "DELETE FROM t WHERE a = 3")
    world.run("INSERT INTO u VALUES (2)")
    assert world.follows().changed.keys() == {"t", "u"}


@modes
def test_types_that_change(world: World) -> None:
    world.run("CREATE TYPE mood AS ENUM ('good', 'bad')")
    world.run("CREATE TABLE t (a integer PRIMARY KEY, n integer, m mood)")
    world.run("INSERT INTO t VALUES (1, 1, 'good')")
    world.follow("t")
    world.run("ALTER TYPE mood ADD VALUE 'fair' BEFORE 'bad'")
    world.run("INSERT INTO t VALUES (2, 2, 'fair')", "UPDATE t SET m = 'fair' WHERE a = 1")
    world.follows()
    world.run("ALTER TYPE mood RENAME VALUE 'fair' TO 'fine'")
    assert world.follows(copied=True).copied == {"t"}, "how rows read has changed"
    world.run("UPDATE t SET n = n * 10")
    world.follows()
    # Rewritten without a word of any row, and with rows before and after.
    world.run("ALTER TABLE t ALTER n TYPE integer USING n * 2")
    assert world.follows(copied=True).copied == {"t"}
    world.run("UPDATE t SET n = n + 1")
    world.run("ALTER TABLE t ALTER n TYPE integer USING n * 2")
    world.run("INSERT INTO t VALUES (3, 3, 'bad')")
    assert world.follows(copied=True).copied == {"t"}
    world.run("DELETE FROM t WHERE a = 1")
    world.follows()


@modes
def test_a_table_recreated_under_its_name(world: World) -> None:
    """It is another table: readers stop, and nothing of it is taken for the old one's."""
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x')")
    world.run("CREATE TABLE u (a integer PRIMARY KEY)")
    world.follow("t", "u")
    before = world.stored(world.sources["t"])
    world.run("INSERT INTO t VALUES (2, 'y')", "DROP TABLE t")
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)", "INSERT INTO t VALUES (3, 'z')")
    world.run("INSERT INTO u VALUES (1)")
    assert world.cut().copied == NONE
    stopped = world.sources["t"]
    assert stopped.status is Status.SUSPENDED
    assert stopped.reason == "source table public.t was dropped"
    assert world.stored(stopped) == before
    assert world.sources["u"].mode is (CaptureMode.WAL if world.by_log else CaptureMode.TRIGGER)
    world.run("INSERT INTO t VALUES (4, 'z')", "INSERT INTO u VALUES (2)")
    assert world.cut().changed == {"u": 1}
    assert world.stored(stopped) == before


@pytest.mark.parametrize("mode", [KEY])
@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("ALTER TABLE t REPLICA IDENTITY FULL", "was changed"),
        ("ALTER TABLE t REPLICA IDENTITY NOTHING", "NOTHING"),
        ("ALTER TABLE t DROP CONSTRAINT t_pkey", "no primary key"),
        ("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (a, b)", "was changed"),
        ("ALTER TABLE t RENAME COLUMN a TO z", "a column of its key is not what it was"),
    ],
    ids=["full", "nothing", "no key", "another key", "renamed key"],
)
def test_another_identity_than_the_key(world: World, statement: str, reason: str) -> None:
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text NOT NULL)")
    world.run("INSERT INTO t VALUES (1, 'x')")
    world.follow("t")
    world.run("INSERT INTO t VALUES (2, 'y')", statement, "INSERT INTO t VALUES (3, 'z')")
    if "NOTHING" not in statement and "DROP CONSTRAINT t_pkey" not in statement:
        world.run("UPDATE t SET b = 'after'")
    world.falls_back(reason)
    world.run("UPDATE t SET b = b || 'again'", "DELETE FROM t WHERE b = 'xagain'")
    assert world.cut().copied == NONE


@pytest.mark.parametrize("mode", [FULL])
def test_another_identity_than_full(world: World) -> None:
    """Also where it is FULL again by the time of the cut: some old rows were not logged."""
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x')")
    world.follow("t")
    world.run("ALTER TABLE t REPLICA IDENTITY DEFAULT", "UPDATE t SET b = 'unseen'")
    world.falls_back("was changed")
    world.run("ALTER TABLE t REPLICA IDENTITY FULL")
    world.go()
    world.run("UPDATE t SET b = 'seen'", "ALTER TABLE t REPLICA IDENTITY DEFAULT")
    world.run("UPDATE t SET b = 'unseen again'", "ALTER TABLE t REPLICA IDENTITY FULL")
    world.falls_back("Old rows of public.t do not match its replica identity")
    world.run("UPDATE t SET b = 'by triggers'")
    assert world.cut().copied == NONE


@pytest.mark.parametrize("mode", [TRIGGER, FULL])
def test_equal_rows_without_a_key(world: World) -> None:
    world.run("CREATE TABLE t (a integer, b text)")
    world.run("INSERT INTO t VALUES (1, 'x'), (1, 'x'), (1, 'x'), (NULL, NULL), (NULL, NULL)")
    world.follow("t")
    for statement in (
        "DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t WHERE a = 1)",
        "UPDATE t SET b = 'y' WHERE ctid = (SELECT min(ctid) FROM t WHERE a = 1)",
        "UPDATE t SET b = 'y' WHERE ctid = (SELECT min(ctid) FROM t WHERE a IS NULL)",
        "INSERT INTO t VALUES (1, 'y'), (NULL, NULL)",
        "DELETE FROM t WHERE a IS NULL",
    ):
        world.run(statement)
        assert world.follows().changed["t"] > 0
    world.run("UPDATE t SET b = b")
    world.cut()
