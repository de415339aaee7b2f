"""A source database and the home database that are put back apart: noticed, never continued."""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.catalog.records import CaptureMode, Source
from headrace.embedded import EmbeddedServer
from headrace.errors import NeedsReinit
from headrace.ingest import transition
from headrace.ingest.ingest import ingest
from headrace.lifecycle.check import Request
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

    @property
    def source(self) -> Source:
        (source,) = self.project._engine.catalog.state().sources
        return source

    def take(self) -> None:
        engine = self.project._engine
        with engine.writing() as lease:
            ingest(engine, engine.catalog.state(), lease.fence)

    def let_go(self) -> None:
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


@pytest.mark.parametrize("mode", MODES)
def test_a_source_server_that_was_put_back(
    dsn: str, tmp_path: Path, home: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its system identifier nor its timeline tell: it is as a snapshot of its disk was."""
    monkeypatch.setattr(transition, "AGAIN", math.inf)
    with ExitStack() as stack:
        _put_back(stack, dsn, tmp_path, home, mode)


def _put_back(stack: ExitStack, dsn: str, tmp_path: Path, home: Path, mode: str) -> None:
    with EmbeddedServer.open(home) as server:
        address = server.dsn
        write(address, "CREATE TABLE t (a integer PRIMARY KEY, b text)")
        if mode not in (KEY, TRIGGER):
            write(address, "ALTER TABLE t REPLICA IDENTITY FULL")
        apart = Apart(dsn, tmp_path, address)
        stack.callback(apart.project.close)
        put_tables(apart.project, Request.of("reader", "SELECT * FROM shop.public.t", {}))
        apart.take()
        if mode != TRIGGER:
            apart.project.set("cdc_mode", "auto")
            apart.project._engine.looked_at.clear()
            apart.take()
        write(address, "INSERT INTO t VALUES (1, 'x')")
        apart.take()
        assert apart.is_exact()
        assert (apart.source.mode is CaptureMode.WAL) is (mode != TRIGGER)
        apart.let_go()
    copy(home / "pg" / "data", home / "kept")
    with EmbeddedServer.open(home) as server:
        for n in range(10, 15):
            write(address, f"INSERT INTO t VALUES ({n}, 'lost')")
            apart.take()
        assert apart.is_exact()
        apart.let_go()
    copy(home / "kept", home / "pg" / "data")
    with EmbeddedServer.open(home) as server:
        write(address, "INSERT INTO t VALUES (20, 'other')", "UPDATE t SET b = 'y' WHERE a = 1")
        write(address, "INSERT INTO t VALUES (21, 'other')")
        with pytest.raises(NeedsReinit) as rewound:
            apart.take()
        assert rewound.value.code == "source-rewound"
