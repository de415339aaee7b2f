"""Slots, publications, sessions and rights that somebody takes away: noticed, and made good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.capture.wal import slot_reader as log
from headrace.capture.wal.slot import read_status
from headrace.catalog.records import CaptureMode, Status
from headrace.embedded import EmbeddedServer
from headrace.engine.steps import Acknowledge, Announce, AppendChange, PinCut, Step, TakeCut
from headrace.errors import HeadraceError
from headrace.lifecycle.planned_table import TableRequest
from tests.alerts import heard_so_far, listen
from tests.capture.wal.streaming import eventually
from tests.databases import extra_database
from tests.ingest.world import FULL, MODES, TRIGGER, WAL, Application, World
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres
modes = pytest.mark.parametrize("mode", MODES)
wal = pytest.mark.parametrize("mode", WAL)

DROP = "SELECT pg_drop_replication_slot('{slot}')"
CREATE = "SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')"
TABLE = "CREATE TABLE t (a integer PRIMARY KEY, b text)"

# What somebody does, and why the log is not read any more.
TAKEN_AWAY = {
    "slot dropped": ((DROP,), "was dropped"),
    "slot recreated": ((DROP, CREATE), "recreated by another client"),
    "slot advanced": (
        ("SELECT pg_replication_slot_advance('{slot}', pg_current_wal_flush_lsn())",),
        "advanced or recreated by another client",
    ),
    "slot consumed": (
        (
            "SELECT count(*) FROM pg_logical_slot_get_binary_changes('{slot}', NULL, NULL,"
            " 'proto_version', '1', 'publication_names', 'headrace')",
        ),
        "advanced or recreated by another client",
    ),
    "publication dropped": (("DROP PUBLICATION headrace",), "the publication was dropped"),
    "publication recreated": (
        (
            "DROP PUBLICATION headrace",
            "CREATE PUBLICATION headrace FOR TABLE t WITH (publish_via_partition_root)",
        ),
        "dropped and recreated",
    ),
    "publication of less": (
        ("ALTER PUBLICATION headrace SET (publish = 'insert')",),
        "options of the publication",
    ),
    "table removed": (("ALTER PUBLICATION headrace DROP TABLE t",), "removed from"),
    "table removed and added": (
        ("ALTER PUBLICATION headrace DROP TABLE t", "ALTER PUBLICATION headrace ADD TABLE t"),
        "for a while",
    ),
}


@wal
def test_what_is_taken_away(world: World) -> None:
    """Rows are written before, in between and after; each time all is copied and reported."""
    world.run(TABLE)
    world.follow("t")
    listen(world.application)
    for n, (name, (statements, reason)) in enumerate(TAKEN_AWAY.items()):
        world.run(f"INSERT INTO t VALUES ({10 * n}, 'before')")
        slot = world.slot
        for number, statement in enumerate(statements):
            world.run(statement.format(slot=slot))
            world.run(f"INSERT INTO t VALUES ({10 * n + number + 1}, 'after')")
        world.falls_back(reason)
        (said,) = heard_so_far(world.application)
        assert (said["about"], said["name"]) == ("source", "public.t")
        assert said["code"] == "fell-back" and reason in said["message"], name
        world.run(f"UPDATE t SET b = 'by triggers' WHERE a = {10 * n}")
        assert world.cut().changed == {"t": 2}, name
        world.go()
        world.run(f"UPDATE t SET b = 'by the log' WHERE a = {10 * n}")
        assert world.follows().changed == {"t": 2}, name


@wal
def test_what_is_taken_away_while_nothing_is_written(world: World) -> None:
    """Nothing new would ever come from the log: that alone must be noticed."""
    world.run(TABLE)
    world.follow("t")
    for statements, reason in TAKEN_AWAY.values():
        for statement in statements:
            world.run(statement.format(slot=world.slot))
        world.falls_back(reason)
        world.go()


@wal
def test_one_of_two_tables_is_taken_away(world: World) -> None:
    world.run(TABLE, "CREATE TABLE u (LIKE t INCLUDING ALL)")
    world.follow("t", "u")
    world.run("ALTER PUBLICATION headrace DROP TABLE t")
    world.run("INSERT INTO t VALUES (1, 'unpublished')", "INSERT INTO u VALUES (1, 'x')")
    taken = world.cut()
    assert (taken.copied, taken.changed) == ({"t"}, {"u": 1})
    assert {name: one.mode for name, one in world.sources.items()} == {"t": "TRIGGER", "u": "WAL"}
    world.run("INSERT INTO t VALUES (2, 'x')", "INSERT INTO u VALUES (2, 'x')")
    assert world.follows().changed == {"t": 1, "u": 1}
    world.go()


@wal
def test_a_busy_database_beside_an_idle_source(world: World, server: EmbeddedServer) -> None:
    """The slot releases WAL that others write, although no change of ours is ever pending."""
    world.run(TABLE)
    world.follow("t")
    world.cut()

    def where() -> tuple[int, int]:
        """Where the slot stands, and how much of the log it keeps from being removed."""
        with world.engine.database.session() as connection:
            status = read_status(connection, world.slot)
        assert status is not None and status.confirmed is not None and status.lag is not None
        return status.confirmed, status.lag

    with (
        extra_database(server) as other,
        psycopg.connect(other, autocommit=True) as busy,
    ):
        busy.execute("CREATE TABLE t (a integer)")
        for _ in range(3):
            before, _ = where()
            busy.execute("INSERT INTO t SELECT generate_series(1, 1000)")
            busy.execute(
                "SELECT count(pg_logical_emit_message(false, 'x', repeat('x', 1000000)))"
                " FROM generate_series(1, 17)"
            )
            busy.execute("CHECKPOINT")
            assert not world.cut().cut
            # Telling the server is not waited for where the log is streamed.
            eventually(lambda past=before: where()[0] - past >= 17_000_000, "moving the slot")
        assert where()[1] < 17_000_000, "what is kept does not grow"
    world.run("INSERT INTO t VALUES (1, 'x')")
    assert world.follows().changed == {"t": 1}


SETTINGS = (
    "statement_timeout = '1ms'",
    "lock_timeout = '1ms'",
    "idle_in_transaction_session_timeout = '1ms'",
    "idle_session_timeout = '1ms'",
    "wal_sender_timeout = '1ms'",
    "default_transaction_read_only = on",
    "default_transaction_isolation = 'serializable'",
    "datestyle = 'German'",
    "timezone = 'Asia/Tokyo'",
    "bytea_output = 'escape'",
)


@modes
def test_sessions_have_settings_of_their_own(
    dsn: str, world: World, application: Application
) -> None:
    """Neither timeouts nor spellings of the database reach them; a peek needs no WAL sender."""
    world.run("CREATE TABLE t (a integer PRIMARY KEY, at timestamptz, raw bytea, b text)")
    name = application.info.dbname
    # Asked for once, by a session as the role itself would have it.
    assert world.engine.database.search_path == ("public",)
    for setting in SETTINGS:
        world.run(f"ALTER DATABASE {name} SET {setting}")
    try:
        world.engine.database.close()
        with pytest.raises(psycopg.Error), psycopg.connect(dsn, autocommit=True) as other:
            other.execute("SELECT pg_sleep(60)")
        world.follow("t")
        world.run(
            "INSERT INTO t SELECT n, now(), decode('00ff', 'hex'), repeat('x', 100)"
            " FROM generate_series(1, 20000) n"
        )
        assert world.follows().changed == {"t": 20_000}
        world.run("TRUNCATE t", "INSERT INTO t VALUES (1, '2024-01-02', NULL, 'x')")
        world.follows(copied=True)
    finally:
        world.run(f"ALTER DATABASE {name} RESET ALL")


ENDED = """
SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
WHERE application_name = 'headrace' AND datname = current_database()
"""
CUT_OFF = [("before", kind) for kind in (TakeCut, AppendChange, Announce, PinCut, Acknowledge)]


@modes
def test_connections_that_are_cut(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two cuts, and in each step of one: what was not durable is read again."""
    world.run(TABLE)
    world.follow("t")
    failed: list[str] = []

    def survive(n: int) -> None:
        world.run(f"INSERT INTO t VALUES ({n}, 'x')")
        try:
            assert world.take().copied == frozenset()
        except HeadraceError as error:
            failed.append(error.code)
        world.engine.watch = world.saw
        monkeypatch.undo()
        world.run(f"UPDATE t SET b = 'again' WHERE a = {n}")
        assert world.follows().changed["t"] > 0

    world.run(ENDED)
    survive(0)
    for n, point in enumerate(CUT_OFF, 1):

        def end(when: str, step: Step, point: tuple[str, type[Step]] = point) -> None:
            world.saw(when, step)
            if (when, type(step)) == point:
                world.run(ENDED)

        world.engine.watch = end
        survive(n)
    if world.by_log:
        peek = log.peek

        def ended_first(*arguments: object) -> Iterator[object]:
            world.run(ENDED)
            return peek(*arguments)

        monkeypatch.setattr(log, "peek", ended_first)
        survive(100)
    assert len(failed) >= 3
    assert set(failed) <= {"connection-lost", "server-unreachable", "lease-lost"}
    assert world.source.mode is (CaptureMode.WAL if world.by_log else CaptureMode.TRIGGER)


@pytest.fixture
def role(application: Application) -> Iterator[str]:
    """A role that may make schemas of its own and serve tables, and nothing else."""
    application.execute("CREATE ROLE headrace_runtime LOGIN")
    database = application.info.dbname
    application.execute(f"GRANT CREATE ON DATABASE {database} TO headrace_runtime")
    application.execute("GRANT CREATE ON SCHEMA public TO headrace_runtime")
    yield "headrace_runtime"
    application.execute("DROP OWNED BY headrace_runtime CASCADE; DROP ROLE headrace_runtime")


@modes
def test_rights_that_are_taken_away(
    dsn: str,
    mode: str,
    server: EmbeddedServer,
    application: Application,
    role: str,
    tmp_path: Path,
) -> None:
    """An error says so, nothing is lost, and with the right it goes on."""
    application.execute(f"{TABLE}; GRANT SELECT ON t TO {role}")
    if mode == FULL:
        application.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    address = server.dsn_of(application.info.dbname, role)
    with headrace.connect(address, home=tmp_path) as project:
        world = World(project, dsn, application, mode)
        # A session that is there already needs no right.
        world.streams = False
        if mode != TRIGGER:
            project.set("cdc_mode", "auto")
        put_tables(project, TableRequest("reader", "SELECT * FROM t"))
        application.execute(project.cdc_sql())
        assert world.cut().copied == {"t"}
        world.cut()
        assert world.source.mode == (CaptureMode.WAL if world.by_log else CaptureMode.TRIGGER)
        (health,) = project.check_cdc_health()
        left = "read from the log, and its triggers could not be dropped yet"
        assert health.alert == (left if world.by_log else None), "only their owner may drop them"

        if world.by_log:
            world.run(f"ALTER ROLE {role} NOREPLICATION", "INSERT INTO t VALUES (4, 'x')")
            with pytest.raises(HeadraceError) as refused:
                world.take()
            assert refused.value.code == "permission-denied"
            world.run(f"ALTER ROLE {role} REPLICATION", "INSERT INTO t VALUES (5, 'x')")
            assert world.follows().changed == {"t": 2}

        before = world.stored(world.source)
        world.run("INSERT INTO t VALUES (1, 'x')", f"REVOKE SELECT ON t FROM {role}")
        assert world.take().changed == {}, "what was captured is not ours to read any more"
        assert world.source.status is Status.SUSPENDED
        assert "may not read public.t" in (world.source.reason or "")
        world.run("TRUNCATE t", "INSERT INTO t VALUES (2, 'x')")
        with pytest.raises(HeadraceError) as unreadable:
            world.take(retry=["t"])
        assert unreadable.value.code == "permission-denied"
        assert world.stored(world.source) == before
        world.run(f"GRANT SELECT ON t TO {role}", "INSERT INTO t VALUES (3, 'x')")
        assert world.cut(retry=["t"]).copied == {"t"}
        world.cut()
        assert world.source.status is Status.ACTIVE
