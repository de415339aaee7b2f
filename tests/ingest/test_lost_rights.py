"""Rights of the triggers' owner that are lost, on every object: never active and wrong.

The owner is a role without other rights than those on its own objects.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.catalog.records import Status
from headrace.embedded import EmbeddedServer
from headrace.ingest import transition
from headrace.lifecycle.planned_table import TableRequest
from tests.ingest.world import TRIGGER, Application, World
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

CAPTURE = "headrace_capture"
BUFFER = f"{CAPTURE}.buffer_{{oid}}"
FUNCTION = f"FUNCTION {CAPTURE}.capture_{{oid}}()"
NOTE = f"FUNCTION {CAPTURE}.note_recopy_reason(oid, text)"

# What is lost, and how it is given back; the last two take several at once.
LOST: dict[str, tuple[str, str]] = {
    "schema": (
        f"REVOKE ALL ON SCHEMA {CAPTURE} FROM setter",
        f"GRANT ALL ON SCHEMA {CAPTURE} TO setter",
    ),
    "buffer": (f"REVOKE ALL ON {BUFFER} FROM setter", f"GRANT ALL ON {BUFFER} TO setter"),
    "notes": (
        f"REVOKE ALL ON {CAPTURE}.recopy_reasons FROM setter",
        f"GRANT ALL ON {CAPTURE}.recopy_reasons TO setter",
    ),
    "function of notes": (f"REVOKE ALL ON {NOTE} FROM setter", f"GRANT ALL ON {NOTE} TO setter"),
    "owner of the function": (
        f"ALTER {FUNCTION} OWNER TO nobody",
        f"ALTER {FUNCTION} OWNER TO setter",
    ),
    "owner of the schema": (
        f"ALTER SCHEMA {CAPTURE} OWNER TO nobody; REVOKE ALL ON SCHEMA {CAPTURE} FROM setter",
        f"ALTER SCHEMA {CAPTURE} OWNER TO setter",
    ),
    "security definer": (
        f"ALTER {FUNCTION} SECURITY INVOKER",
        f"ALTER {FUNCTION} SECURITY DEFINER",
    ),
    "transaction id": (
        "REVOKE ALL ON FUNCTION pg_catalog.pg_current_xact_id() FROM PUBLIC",
        "GRANT ALL ON FUNCTION pg_catalog.pg_current_xact_id() TO PUBLIC",
    ),
    "buffer and notes": (
        f"REVOKE ALL ON {BUFFER}, {CAPTURE}.recopy_reasons FROM setter",
        f"GRANT ALL ON {BUFFER}, {CAPTURE}.recopy_reasons TO setter",
    ),
    "buffer and function of notes": (
        f"REVOKE ALL ON {BUFFER} FROM setter; REVOKE ALL ON {NOTE} FROM setter",
        f"GRANT ALL ON {BUFFER} TO setter; GRANT ALL ON {NOTE} TO setter",
    ),
}


@pytest.fixture
def world(
    server: EmbeddedServer,
    dsn: str,
    application: Application,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """A runtime role and a setup role that own nothing but what they make."""
    monkeypatch.setattr(transition, "AGAIN", math.inf)
    database = application.info.dbname
    application.execute(
        "CREATE ROLE setter LOGIN; CREATE ROLE runner LOGIN;"
        "CREATE ROLE writer; CREATE ROLE nobody;"
        f'GRANT CREATE ON DATABASE "{database}" TO setter, runner;'
        "GRANT ALL ON SCHEMA public TO setter, runner, writer;"
        "CREATE TABLE t (id int PRIMARY KEY, x int); ALTER TABLE t OWNER TO setter;"
        "GRANT SELECT ON t TO runner; GRANT ALL ON t TO writer"
    )
    try:
        with headrace.connect(
            server.dsn_of(database, "runner"),
            home=tmp_path,
            setup_dsn=server.dsn_of(database, "setter"),
        ) as project:
            yield World(project, dsn, application, TRIGGER)
    finally:
        application.execute(
            "DROP OWNED BY setter, runner, writer, nobody CASCADE;"
            "DROP ROLE setter, runner, writer, nobody"
        )


def written(world: World, number: int) -> None:
    """A statement of the application, which passes whatever becomes of capture."""
    world.together("SET LOCAL ROLE writer", f"INSERT INTO t VALUES ({number}, {number})")


def captured(world: World) -> None:
    put_tables(world.project, TableRequest("reader", "SELECT id, x FROM t"))
    world.cut()
    written(world, 1)
    assert world.cut().changed == {"t": 1}


@pytest.mark.parametrize("lost", LOST)
def test_rights_that_are_back_before_the_next_cut(world: World, lost: str) -> None:
    captured(world)
    taken, given = (text.format(oid=world.source.oid) for text in LOST[lost])
    world.run(taken)
    written(world, 2)
    world.run(given)
    written(world, 3)
    assert world.cut(retry=["t"]).copied == {"t"}
    assert (world.source.status, world.rows("t")) == (Status.ACTIVE, 3)
    written(world, 4)
    assert world.cut().changed == {"t": 1}


@pytest.mark.parametrize("lost", LOST)
def test_rights_that_are_lost_across_cuts(world: World, lost: str) -> None:
    """A source that cannot be mended is suspended; whatever is active is right."""
    captured(world)
    taken, given = (text.format(oid=world.source.oid) for text in LOST[lost])
    world.run(taken)
    for number in range(2, 5):
        written(world, number)
        world.cut()
    world.run(given)
    written(world, 5)
    world.cut(retry=["t"])
    assert (world.source.status, world.rows("t")) == (Status.ACTIVE, 5)
    written(world, 6)
    assert world.cut().changed == {"t": 1}
