"""A source database and the home database that are put back apart: noticed, never continued."""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import headrace
from headrace.catalog.records import CaptureMode, Source
from headrace.embedded import EmbeddedServer
from headrace.errors import NeedsReinit
from headrace.ingest import transition
from headrace.ingest.attempts import CaptureAttempts
from headrace.ingest.ingest import ingest
from headrace.lifecycle.planned_table import TableRequest
from tests.databases import extra_database
from tests.ingest.world import KEY, MODES, TRIGGER, World
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="headrace-apart-"))
    yield folder
    shutil.rmtree(folder)


class Apart:
    """A project whose only source is in a database `shop` of a server of its own."""

    def __init__(self, dsn: str, folder: Path, address: str) -> None:
        self.project = headrace.connect(dsn, home=folder)
        self.project.attach("shop", address)
        self.address = address

    def follow(self, *, by_log: bool) -> None:
        """Have table `t` copied, captured as requested, and one change of it taken in."""
        put_tables(self.project, TableRequest.of("reader", "SELECT * FROM shop.public.t", {}))
        self.take()
        if by_log:
            self.project.set("cdc_mode", "auto")
            self.project._engine.part(CaptureAttempts).followed_at.clear()
            self.take()
        write(self.address, "INSERT INTO t VALUES (1, 'x')")
        self.take()
        assert self.is_exact()
        assert (self.source.mode is CaptureMode.WAL) is by_log

    @property
    def source(self) -> Source:
        (source,) = self.project._engine.catalog.state().sources
        return source

    def take(self) -> None:
        engine = self.project._engine
        with engine.writing() as lease:
            ingest(engine, engine.catalog.state(), lease.fence)

    def release(self) -> None:
        """Close the connections to the server, so that it stops."""
        engine = self.project._engine
        engine.source_database(engine.catalog.state().database(self.source.database)).close()

    def is_exact(self) -> bool:
        with psycopg.connect(self.address, autocommit=True) as application:
            world = World(self.project, self.address, application, "")
            return world.stored(self.source) == world.live(self.source)


def write(address: str, *statements: str) -> None:
    with psycopg.connect(address, autocommit=True) as application:
        for statement in statements:
            application.execute(statement)


def copy(one: Path, other: Path) -> None:
    """The files of a server that is stopped, as a snapshot of its disk has them."""
    shutil.rmtree(other, ignore_errors=True)
    subprocess.run(["cp", "-a", str(one), str(other)], check=True)


@pytest.mark.parametrize("more", [0, 2000], ids=["behind", "further again"])
@pytest.mark.parametrize("mode", MODES)
def test_a_source_server_that_was_put_back(
    dsn: str, tmp_path: Path, home: Path, mode: str, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its system identifier nor its timeline tell: it is as a snapshot of its disk was."""
    monkeypatch.setattr(transition, "AGAIN", math.inf)
    with ExitStack() as stack:
        _put_back(stack, dsn, tmp_path, home, mode, more)


def _put_back(stack: ExitStack, dsn: str, tmp_path: Path, home: Path, mode: str, more: int) -> None:
    with EmbeddedServer.open(home) as server:
        address = server.dsn
        write(address, "CREATE TABLE t (a integer PRIMARY KEY, b text)")
        if mode not in (KEY, TRIGGER):
            write(address, "ALTER TABLE t REPLICA IDENTITY FULL")
        apart = Apart(dsn, tmp_path, address)
        stack.callback(apart.project.close)
        apart.follow(by_log=mode != TRIGGER)
        apart.release()
    copy(home / "pg" / "data", home / "kept")
    with EmbeddedServer.open(home) as server:
        for n in range(10, 15):
            write(address, f"INSERT INTO t VALUES ({n}, 'lost')")
            apart.take()
        assert apart.is_exact()
        apart.release()
    copy(home / "kept", home / "pg" / "data")
    with EmbeddedServer.open(home):
        write(address, "INSERT INTO t VALUES (20, 'other')", "UPDATE t SET b = 'y' WHERE a = 1")
        # Others write until the server is further than it was at the last cut: to that cut all
        # of the above is old.
        write(address, *["SELECT pg_current_xact_id()"] * more)
        with pytest.raises(NeedsReinit) as rewound:
            apart.take()
        assert rewound.value.code == "source-rewound"


@pytest.mark.parametrize("written", [True, False], ids=["written", "quiet"])
@pytest.mark.parametrize("mode", MODES)
def test_a_home_that_was_put_back(
    server: EmbeddedServer,
    tmp_path: Path,
    mode: str,
    written: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The slot has released what it lacks: the source is copied, also if nothing more comes."""
    monkeypatch.setattr(transition, "AGAIN", math.inf)
    with extra_database(server) as address, extra_database(server) as dsn:
        write(address, "CREATE TABLE t (a integer PRIMARY KEY, b text)")
        if mode not in (KEY, TRIGGER):
            write(address, "ALTER TABLE t REPLICA IDENTITY FULL")
        apart = Apart(dsn, tmp_path / "home", address)
        with closing(apart.project):
            apart.follow(by_log=mode != TRIGGER)
        copy(tmp_path / "home", tmp_path / "kept")
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            name = conninfo_to_dict(dsn)["dbname"]
            connection.execute(f"CREATE DATABASE kept TEMPLATE {name}")
        try:
            apart = Apart(dsn, tmp_path / "home", address)
            with closing(apart.project):
                for n in range(10, 13):
                    write(address, f"INSERT INTO t VALUES ({n}, 'taken in')")
                    apart.take()
                assert apart.is_exact()
            if written:
                write(address, "UPDATE t SET b = 'later' WHERE a = 11")
            kept = Apart(server.dsn_of("kept"), tmp_path / "kept", address)
            with closing(kept.project):
                kept.take()
                assert kept.is_exact()
                assert kept.source.mode is CaptureMode.TRIGGER
                if mode != TRIGGER:
                    assert "by another client" in (kept.source.mode_reason or "")
        finally:
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                connection.execute("DROP DATABASE kept WITH (FORCE)")
