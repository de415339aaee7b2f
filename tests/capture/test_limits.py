"""A dead Headrace does not fill the disk: buffers and notes stop growing, and nothing is lost."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from headrace.capture import layout, settle
from headrace.capture.setup import set_up
from headrace.errors import Transient, UserError
from headrace.source.connection import Database
from tests.capture.follower import Follower

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]


def one(application: Application, query: str) -> Any:
    row = application.execute(query).fetchone()
    assert row is not None
    return row[0]


def test_a_buffer_stops_growing(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer, b text)")
    follower = Follower(database, "t", max_buffer_mb=1)
    follower.tick()
    size = f"SELECT pg_table_size('headrace_capture.buffer_{follower.oids['t']}')"
    rows = "SELECT n, repeat('x', 100) FROM generate_series(1, 1000) n"
    for _ in range(20):
        application.execute(f"INSERT INTO t {rows}")
    assert one(application, size) < 2 * 1024 * 1024
    assert follower.tick().copied == {"t": layout.FULL}
    assert one(application, size) < 100_000
    application.execute("INSERT INTO t VALUES (0, '')")
    assert follower.tick().copied == {}
    assert follower.bag("t").total() == 20_001


def test_one_large_statement_is_captured(database: Database, application: Application) -> None:
    """The size is looked at between statements, and the space given back once it is empty."""
    application.execute("CREATE TABLE t (a integer, b text)")
    follower = Follower(database, "t", max_buffer_mb=1)
    follower.tick()
    size = f"SELECT pg_table_size('headrace_capture.buffer_{follower.oids['t']}')"
    application.execute("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 20000) n")
    assert one(application, size) > 2 * 1024 * 1024
    assert follower.tick().copied == {}
    assert one(application, size) < 100_000
    application.execute("DELETE FROM t WHERE a < 10")
    assert follower.tick().copied == {}


def test_space_is_not_given_back_under_a_writer(
    database: Database, application: Application, dsn: str
) -> None:
    application.execute("CREATE TABLE t (a integer, b text)")
    follower = Follower(database, "t", max_buffer_mb=1)
    follower.tick()
    application.execute("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 20000) n")
    with psycopg.connect(dsn) as writer:
        writer.execute("SET lock_timeout = '1s'")
        # Too large by now, so this leaves a note; what matters is that it neither waits nor fails.
        writer.execute("INSERT INTO t VALUES (-1, 'open')")
        assert follower.tick().copied == {}
    application.execute("INSERT INTO t VALUES (-2, 'later')")
    assert follower.tick().copied == {"t": layout.FULL}
    assert follower.bag("t").total() == 20_002


def test_large_values_count(database: Database, application: Application) -> None:
    """They are kept apart from the rows, but in the same buffer."""
    application.execute("CREATE TABLE t (b text)")
    follower = Follower(database, "t", max_buffer_mb=1)
    follower.tick()
    for _ in range(5):
        application.execute(
            "INSERT INTO t SELECT string_agg(md5(n::text), '') FROM generate_series(1, 15000) n"
        )
    assert follower.tick().copied == {"t": layout.FULL}


def test_a_new_limit_needs_no_copy(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (b text)")
    follower = Follower(database, "t", max_buffer_mb=1)
    follower.tick()
    assert not set_up(database, follower.source("t"), max_buffer_mb=8)
    assert follower.tick().skipped
    for _ in range(3):
        application.execute("INSERT INTO t SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
    assert follower.tick().copied == {}


@pytest.fixture
def broken(
    database: Database, application: Application, monkeypatch: pytest.MonkeyPatch
) -> Follower:
    """A source whose changes cannot be recorded; one note is left, and further ones are spared."""
    monkeypatch.setattr(layout, "UNCHECKED_NOTES_BYTES", 0)
    monkeypatch.setattr(settle, "LOCK_MILLISECONDS", 50)
    monkeypatch.setattr(settle, "ATTEMPTS", 2)
    application.execute("CREATE TABLE t (a integer)")
    follower = Follower(database, "t")
    follower.tick()
    # A role that cannot repair what is broken: capture stays as it is.
    monkeypatch.setattr("tests.capture.follower.set_up", lambda *_, **__: False)
    application.execute(
        f"ALTER TABLE headrace_capture.buffer_{follower.oids['t']} ADD CHECK (_weight > 5)"
    )
    application.execute("INSERT INTO t VALUES (1)")
    return follower


NOTES = "SELECT count(*) FROM headrace_capture.recopy_reasons"


def test_notes_are_few(broken: Follower, application: Application) -> None:
    for n in range(50):
        application.execute("INSERT INTO t VALUES (%s)", (n,))
    assert one(application, NOTES) == 1
    assert set(broken.tick().copied or ()) == {"t"}
    assert broken.bag("t").total() == 51
    assert one(application, NOTES) == 0


def test_a_note_relied_upon_stays(broken: Follower, application: Application, dsn: str) -> None:
    """A transaction that spared its own note must end before the note goes."""
    with psycopg.connect(dsn) as writer:
        writer.execute("INSERT INTO t VALUES (2)")
        assert one(application, NOTES) == 1
        with pytest.raises(Transient) as busy:
            broken.tick()
        assert busy.value.code == "source-locked"
        application.execute("INSERT INTO t VALUES (3)")
    assert set(broken.tick().copied or ()) == {"t"}
    assert broken.bag("t").total() == 3


def test_an_old_snapshot_does_not_rely_on_a_note_that_is_gone(
    broken: Follower, application: Application, dsn: str
) -> None:
    with psycopg.connect(dsn) as writer:
        writer.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert writer.execute("SELECT count(*) FROM t").fetchone() == (1,)
        broken.tick()
        assert one(application, NOTES) == 0
        writer.execute("INSERT INTO t VALUES (2)")
    assert one(application, NOTES) == 1
    assert set(broken.tick().copied or ()) == {"t"}
    assert broken.bag("t").total() == 2


def test_the_number_of_columns(database: Database, application: Application) -> None:
    """A buffer has three more than are captured, and PostgreSQL has a limit for tables."""
    for name, number in (("widest", 1597), ("wider", 1598)):
        columns = ", ".join(f"c{place} boolean" for place in range(number))
        application.execute(f"CREATE TABLE {name} ({columns}, other point)")
    follower = Follower(database, "widest")
    follower.tick()
    application.execute("INSERT INTO widest (c0, c1596) VALUES (true, false)")
    assert follower.tick().changed == 1
    with pytest.raises(UserError) as refused:
        Follower(database, "wider")
    assert refused.value.code == "unsupported-source"
    assert refused.value.message == "public.wider has 1598 columns to capture; at most 1597 can be"
