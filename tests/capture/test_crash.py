"""Crashes of the server, and servers that are no primaries, on a server of their own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from headrace.capture.adapt import adapt
from headrace.capture.cut import open_cut
from headrace.capture.statements import CaptureOptions
from headrace.embedded import EmbeddedServer
from headrace.errors import Unavailable
from headrace.source.connection import Database
from tests.capture.follower import Follower
from tests.capture.server_crash import crash, stopped_wal_writer

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="headrace-crash-"))
    yield folder
    shutil.rmtree(folder)


def test_what_a_cut_contains_survives_a_crash(home: Path) -> None:
    with EmbeddedServer.open(home) as server, Database(server.dsn) as database:
        with psycopg.connect(server.dsn, autocommit=True) as application:
            application.execute("CREATE TABLE lazy (a integer)")
            follower = Follower(database, "lazy")
            follower.tick()
            application.execute("SET synchronous_commit = off")
            flushed = "SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn"
            with stopped_wal_writer(application):
                application.execute("INSERT INTO lazy SELECT generate_series(1, 100)")
                end = application.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
                assert application.execute(flushed, end).fetchone() == (False,)
                with open_cut(database, [follower.source("lazy")]):
                    assert application.execute(flushed, end).fetchone() == (True,)
        crash(home)
        with EmbeddedServer.open(home) as again:
            assert again.dsn == server.dsn
            # Idle connections that the crash ended are noticed before they are used.
            assert follower.tick().copied == {}
            assert follower.bag("lazy").total() == 100


def test_a_crash_empties_what_is_unlogged(home: Path) -> None:
    with EmbeddedServer.open(home) as server, Database(server.dsn) as database:
        with psycopg.connect(server.dsn, autocommit=True) as application:
            application.execute("CREATE UNLOGGED TABLE source (a integer)")
            application.execute("CREATE TABLE buffered (a integer)")
            application.execute("CREATE TABLE logged (a integer)")
            followers = (
                Follower(database, "source"),
                Follower(database, "buffered", unlogged=True),
                Follower(database, "logged"),
            )
            for follower in followers:
                follower.tick()
                [name] = follower.oids
                application.execute(f"INSERT INTO {name} SELECT generate_series(1, 10)")
                assert follower.tick().copied == {}
                application.execute(f"INSERT INTO {name} VALUES (11)")
        crash(home)
        with EmbeddedServer.open(home):
            database.close()
            for follower, rows in zip(followers, (0, 11, 11), strict=True):
                [name] = follower.oids
                with open_cut(database, [follower.source(name)]) as cut:
                    reason = "a crash of the server emptied an unlogged table"
                    expected = {} if name == "logged" else {follower.oids[name]: reason}
                    assert cut.recopy_reasons == expected
                assert bool(follower.tick().copied) is (name != "logged")
                assert follower.bag(name).total() == rows
                assert follower.tick().skipped


def test_buffers_are_converted_after_a_crash(home: Path) -> None:
    """An older crash says nothing of a buffer that was logged, and all of one that was not."""
    unlogged, logged = CaptureOptions(unlogged=True), CaptureOptions()
    with EmbeddedServer.open(home) as server, Database(server.dsn) as database:
        with psycopg.connect(server.dsn, autocommit=True) as application:
            application.execute("CREATE TABLE becomes_unlogged (a integer)")
            application.execute("CREATE TABLE becomes_logged (a integer)")
            first = Follower(database, "becomes_unlogged")
            second = Follower(database, "becomes_logged", unlogged=True)
            for follower in (first, second):
                follower.tick()
                [name] = follower.oids
                application.execute(f"INSERT INTO {name} VALUES (1)")
        crash(home)
        with EmbeddedServer.open(home), psycopg.connect(server.dsn, autocommit=True) as application:
            database.close()
            for follower, options in ((first, unlogged), (second, logged)):
                [source] = follower.sources.values()
                assert adapt(database, [source], options, patient=True) == {source.oid: None}
                assert adapt(database, [source], options, patient=True) == {}
                application.execute(f"INSERT INTO {source.name} VALUES (2)")
                follower.options = {"unlogged": options.unlogged}
            assert first.tick().copied == {}
            reason = "a crash of the server emptied an unlogged table"
            assert second.tick().copied == {"becomes_logged": reason}
            assert [one.bag(*one.oids).total() for one in (first, second)] == [2, 2]
            for follower in (first, second):
                [name] = follower.oids
                application.execute(f"INSERT INTO {name} VALUES (3)")
                assert follower.tick().copied == {}
                application.execute(f"INSERT INTO {name} VALUES (4)")
        crash(home)
        with EmbeddedServer.open(home):
            database.close()
            with open_cut(database, [first.source("becomes_unlogged")]) as cut:
                assert cut.recopy_reasons == {first.oids["becomes_unlogged"]: reason}
            assert first.tick().copied
            assert second.tick().copied == {}
            assert [one.bag(*one.oids).total() for one in (first, second)] == [4, 4]


def test_no_cut_on_a_standby(home: Path) -> None:
    with EmbeddedServer.open(home) as server:
        with psycopg.connect(server.dsn, autocommit=True) as application:
            application.execute("CREATE TABLE t (a integer)")
        with Database(server.dsn) as database:
            follower = Follower(database, "t")
    standby = home / "pg" / "data" / "standby.signal"
    standby.touch()
    shutil.chown(standby, standby.parent.owner())
    with EmbeddedServer.open(home) as server, Database(server.dsn) as database:
        with pytest.raises(Unavailable) as refused, open_cut(database, [follower.source("t")]):
            pass
        assert refused.value.code == "standby-server"
    standby.unlink()
