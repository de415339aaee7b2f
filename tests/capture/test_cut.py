"""What a cut is: locks first, then one snapshot, for all who join it."""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg
import pytest

from headrace.capture.changes import acknowledge, pending
from headrace.capture.cut import open_cut
from headrace.capture.health import check
from headrace.capture.setup import set_up, tear_down
from headrace.errors import NeedsReinit, Transient
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from tests.capture.follower import Follower, bag_of, read_changes, read_live

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]


def test_the_snapshot_is_taken_after_the_locks(
    database: Database, application: Application, dsn: str
) -> None:
    """A rewrite that held the table locked when the cut began is in it."""
    application.execute("CREATE TABLE t (a integer)")
    application.execute("INSERT INTO t VALUES (1)")
    follower = Follower(database, "t")
    follower.tick()
    source = follower.source("t")
    with psycopg.connect(dsn) as session:
        session.execute("TRUNCATE t")
        session.execute("INSERT INTO t VALUES (2)")
        later = threading.Timer(0.5, session.commit)
        later.start()
        started = time.monotonic()
        with open_cut(database, [source], lock=[source.oid]) as cut:
            assert time.monotonic() - started > 0.4
            assert bag_of(read_live(database, cut, cut.tables[source.oid])) == {(2,): 1}
            assert "truncated" in cut.recopy_reasons[source.oid]
        later.join()


def test_a_locked_table_is_busy(database: Database, application: Application, dsn: str) -> None:
    application.execute("CREATE TABLE t (a integer)")
    follower = Follower(database, "t")
    source = follower.source("t")
    with database.session() as connection:
        connection.execute("SET lock_timeout = '100ms'")  # the cut is lent the same one
    with psycopg.connect(dsn) as session:
        session.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Transient) as busy, open_cut(database, [source], lock=[source.oid]):
            pass
        assert busy.value.code == "source-locked"
        with open_cut(database, [source]) as cut:
            assert source.oid in cut.tables, "without copying no lock is needed"


def test_what_is_copied_stays_locked(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer)")
    application.execute("INSERT INTO t SELECT generate_series(1, 10)")
    follower = Follower(database, "t")
    source = follower.source("t")
    application.execute("SET lock_timeout = '50ms'")
    with open_cut(database, [source], lock=[source.oid]) as cut:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            application.execute("TRUNCATE t")
        application.execute("DELETE FROM t")
        assert bag_of(read_live(database, cut, cut.tables[source.oid])).total() == 10
    application.execute("TRUNCATE t")


def test_ranges_cover_every_row_once(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer, b text)")
    application.execute("CREATE TABLE e (a integer)")
    application.execute("CREATE TABLE p (a integer) PARTITION BY RANGE (a)")
    for n in range(3):
        bounds = f"FROM ({n * 1000}) TO ({n * 1000 + 1000})"
        application.execute(f"CREATE TABLE p{n} PARTITION OF p FOR VALUES {bounds}")
    application.execute("INSERT INTO p SELECT generate_series(0, 2999)")
    application.execute("INSERT INTO t SELECT n, repeat('x', 300) FROM generate_series(1, 20000) n")
    application.execute("DELETE FROM t WHERE a % 3 = 0")
    follower = Follower(database, "t", "e", "p")
    sources = list(follower.sources.values())
    with open_cut(database, sources, lock=follower.sources) as cut:
        application.execute("UPDATE t SET b = 'later'")
        application.execute("INSERT INTO p SELECT generate_series(0, 2999)")
        for name, ranges, rows in (("t", 7, 13334), ("e", 1, 0), ("p", 3, 3000)):
            table = cut.tables[follower.oids[name]]
            parts = cut.ranges(table, 7)
            assert len(parts) == ranges
            assert all((part.bytes > 0) == (rows > 0) for part in parts)
            assert "ctid <" not in parts[-1].where, "the last one is open-ended"
            bag = bag_of(read_live(database, cut, table, 7))
            assert (bag.total(), max(bag.values(), default=1)) == (rows, 1)


def test_partitions_without_a_right_of_their_own(
    database: Database, application: Application, dsn: str
) -> None:
    application.execute("CREATE TABLE p (a integer) PARTITION BY LIST (a)")
    application.execute("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)")
    application.execute("CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)")
    application.execute("INSERT INTO p VALUES (1), (2), (2)")
    follower = Follower(database, "p")
    source = follower.source("p")
    application.execute("CREATE ROLE only_the_parent LOGIN")
    try:
        application.execute("GRANT SELECT ON p, p2 TO only_the_parent")
        with open_cut(database, [source], lock=[source.oid]) as cut:
            cut.connection.execute("SET LOCAL ROLE only_the_parent")
            first, second = cut.ranges(cut.tables[source.oid], 1)
            cut.connection.execute("RESET ROLE")
            assert first.relation == '"public"."p"'
            assert second.relation == 'ONLY "public"."p2"'
            for part, rows in ((first, 1), (second, 2)):
                query = f"SELECT count(*) FROM {part.relation} WHERE {part.where}"
                assert cut.connection.execute(query).fetchone() == (rows,)
    finally:
        application.execute("DROP OWNED BY only_the_parent; DROP ROLE only_the_parent")


def test_a_server_that_went_back(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer)")
    follower = Follower(database, "t")
    source = follower.source("t")
    ahead = "99999999:99999999:"
    with (
        pytest.raises(NeedsReinit) as rewound,
        open_cut(database, [source], previous=ahead),
    ):
        pass
    assert rewound.value.code == "source-rewound"


def test_the_identity_of_the_server(database: Database, application: Application) -> None:
    with open_cut(database, []) as cut:
        row = application.execute(
            "SELECT system_identifier::text, timeline_id"
            " FROM pg_control_system(), pg_control_checkpoint()"
        ).fetchone()
        assert (cut.cut.system_identifier, cut.cut.timeline) == row
        assert cut.cut.taken_at.tzinfo is not None


def test_transactions_that_are_open_across_cuts(
    database: Database, application: Application, dsn: str
) -> None:
    """Each arrives with the first cut after its end, although later ones came before it."""
    application.execute("CREATE TABLE t (a integer)")
    follower = Follower(database, "t")
    follower.tick()
    with psycopg.connect(dsn) as early, psycopg.connect(dsn, autocommit=True) as prepared:
        early.execute("INSERT INTO t VALUES (1)")
        for name, value in (("one", 2), ("two", 3)):
            prepared.execute("BEGIN")
            prepared.execute("INSERT INTO t VALUES (%s)", (value,))
            prepared.execute(f"PREPARE TRANSACTION '{name}'")
        application.execute("INSERT INTO t VALUES (4)")
        follower.tick()
        assert follower.bag("t") == {(4,): 1}
        assert follower.tick().skipped
        early.commit()
        follower.tick()
        assert follower.bag("t") == {(4,): 1, (1,): 1}
        prepared.execute("ROLLBACK PREPARED 'one'")
        assert follower.tick().skipped
        prepared.execute("COMMIT PREPARED 'two'")
        assert follower.tick().changed == 1
        assert follower.bag("t") == {(4,): 1, (1,): 1, (3,): 1}


def test_acknowledging_twice_and_crashing_between(
    database: Database, application: Application
) -> None:
    """Until it is acknowledged a change can be read again; afterwards it is gone."""
    application.execute("CREATE TABLE t (a integer)")
    follower = Follower(database, "t")
    follower.tick()
    source, before = follower.source("t"), follower.snapshot
    application.execute("INSERT INTO t VALUES (1)")
    with open_cut(database, [source]) as cut:
        first = cut.cut.snapshot
    application.execute("INSERT INTO t VALUES (2)")
    for _ in range(2):
        assert bag_of(read_changes(database, source, before, first)) == {(1,): 1}
    for _ in range(2):
        acknowledge(database, [source.oid], first, 7)
    with open_cut(database, [source]) as cut:
        assert cut.acknowledged == {source.oid: 7}
        assert bag_of(read_changes(database, source, before, first)) == {}
        assert bag_of(read_changes(database, source, first, cut.cut.snapshot)) == {(2,): 1}
        assert bag_of(read_changes(database, source, None, cut.cut.snapshot)) == {(2,): 1}


def test_a_copy_that_was_not_acknowledged_is_still_due(
    database: Database, application: Application
) -> None:
    application.execute("CREATE TABLE t (a integer)")
    follower = Follower(database, "t")
    follower.tick()
    source = follower.source("t")
    application.execute(
        "INSERT INTO headrace_capture.recopy_reasons (source, reason)"
        f" VALUES ({source.oid}, 'a change could not be recorded')"
    )
    for _ in range(2):
        with open_cut(database, [source], lock=[source.oid]) as cut:
            assert "could not be recorded" in cut.recopy_reasons[source.oid]
    with database.session() as connection:
        assert follower.snapshot is not None
        assert pending(connection, [source], follower.snapshot) == {source.oid}
    acknowledge(database, [source.oid], cut.cut.snapshot, 2)
    with database.session() as connection:
        assert pending(connection, [source], cut.cut.snapshot) == frozenset()


def test_check_and_tear_down(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer)")
    application.execute("CREATE TABLE u (a integer)")
    with database.session() as connection:
        t, u = (find_table(connection, None, name) for name in "tu")
        assert set(check(connection, [t, u])) == {t.oid, u.oid}
        assert set_up(database, t)
        assert not set_up(database, t)
        assert check(connection, [t, u]) == {u.oid: "capture is not set up"}
        assert set_up(database, u)
        application.execute("ALTER TABLE u DISABLE TRIGGER headrace_capture_delete")
        assert "headrace_capture_delete" in check(connection, [t, u])[u.oid]
        tear_down(database, u.oid)
        application.execute("DROP TABLE t")
        tear_down(database, t.oid)
        tear_down(database, t.oid)
        rows = application.execute(
            "SELECT (SELECT count(*) FROM pg_trigger), to_regnamespace('headrace_capture')"
        ).fetchone()
        assert rows == (0, None)
