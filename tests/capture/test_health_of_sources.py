"""Health of capture, over databases that are as they are, and judged from what was seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headrace
from headrace.api import Headrace
from headrace.capture.observe import Observed
from headrace.capture.setup import set_up, tear_down
from headrace.capture.wal.following import Followed, Following
from headrace.capture.wal.identity import identities
from headrace.capture.wal.publication import add_to_publication, read_publication
from headrace.capture.wal.slot import SlotStatus, create, drop, lsn_to_text
from headrace.catalog import Change
from headrace.catalog.records import CaptureMode, DatabaseRecord, Source, Status
from headrace.embedded import EmbeddedServer
from headrace.errors import Unavailable
from headrace.lifecycle.planned_table import TableRequest
from headrace.observe.capture_status import SourceCapture
from headrace.observe.cdc_status import MEGABYTE, SourceHealth, health_of
from headrace.settings import Settings
from headrace.source.introspect import find_table, inspect
from headrace.source.server import server_identity
from tests.databases import extra_database
from tests.lifecycle.made import put_tables
from tests.observe.states import NOON, state_of, table

Application = psycopg.Connection[Any]

FOLLOWING = Following("headrace_1", "shop", 0, 1, "1", "1", 1)
HOME = DatabaseRecord(1, "home", "1", 1, cut_at=NOON, following=FOLLOWING)
SLOT = SlotStatus("pgoutput", "shop", None, 1, 0x16B3748, "reserved", 5 * MEGABYTE, None, None)


def judged(
    seen: Observed | Unavailable, mode: CaptureMode = CaptureMode.TRIGGER, **changed: Any
) -> SourceHealth:
    """The health of the one source of a state, changed like this; its oid is 1."""
    requested_mode = changed.pop("requested_mode", "trigger")
    state = state_of(
        {"s": 1, "t": 1}, table("t", {"s": 1}, 1, options={"cdc_mode": requested_mode})
    )
    (source,) = state.sources
    source = replace(source, mode=mode, **changed)
    now = NOON + timedelta(seconds=90)
    return health_of(state, Settings(), HOME, source, seen, now=now)


def level_and_alert(found: SourceHealth) -> tuple[str, str | None]:
    return found.level, found.alert


def test_all_is_well() -> None:
    found = judged(Observed({1: 8192}, SLOT))
    assert found == SourceHealth(
        "public.s",
        "home",
        "TRIGGER",
        "trigger",
        None,
        "ACTIVE",
        8192,
        timedelta(seconds=90),
        None,
        "fine",
        None,
    )
    found = judged(Observed({}, SLOT), CaptureMode.WAL, requested_mode="wal")
    assert (found.lag_bytes, found.position, found.level) == (5 * MEGABYTE, "0/16B3748", "fine")
    moving = judged(Observed({1: 8192}, SLOT), CaptureMode.TRANSITIONING, requested_mode="auto")
    assert (moving.lag_bytes, moving.position, moving.level) == (8192, "0/16B3748", "fine")


@pytest.mark.parametrize(
    ("lag", "safe", "level"),
    [(99, None, "fine"), (100, None, "warning"), (1024, None, "critical"), (8, 2, "warning")],
)
def test_log_that_is_held_back(lag: int, safe: int | None, level: str) -> None:
    slot = replace(SLOT, lag=lag * MEGABYTE, safe=None if safe is None else safe * MEGABYTE)
    for mode in (CaptureMode.WAL, CaptureMode.TRANSITIONING):
        found = judged(Observed({}, slot), mode, requested_mode="auto")
        assert found.level == level
        assert (found.alert is None) == (level == "fine")
        if found.alert is not None:
            assert f"slot headrace_1 holds back {lag:,} MB" in found.alert
    assert judged(Observed({}, slot)).level == "fine", "triggers do not mind"


def test_a_slot_that_the_server_does_not_limit() -> None:
    """Whoever requests WAL mode by name gets it, and the alert says what that means."""
    seen = Observed({}, replace(SLOT, bounded=False))
    found = judged(seen, CaptureMode.WAL, requested_mode="wal")
    assert found.level == "warning"
    assert "headrace_1 could fill the server's disk" in (found.alert or "")
    assert judged(seen).level == "fine", "triggers do not mind"


@pytest.mark.parametrize(("size", "level"), [(511, "fine"), (512, "warning"), (1024, "critical")])
def test_buffers_that_grow(size: int, level: str) -> None:
    found = judged(Observed({1: size * MEGABYTE}))
    assert (found.level, found.lag_bytes) == (level, size * MEGABYTE)
    if level != "fine":
        assert found.alert == f"the change buffer has {size:,} MB of 1024 MB"


def test_the_worst_problem_is_reported() -> None:
    large = {1: 600 * MEGABYTE}
    reason = "trigger x is missing or disabled"
    assert level_and_alert(judged(Observed(large, recopy_reasons={1: reason}))) == (
        "warning",
        f"will be copied again: {reason}",
    )
    assert (
        judged(Observed({}, recopy_reasons={1: reason}), status=Status.INITIALIZING).level == "fine"
    )
    gone = Observed({}, None, leaving={1: "replication slot x was dropped"})
    assert level_and_alert(judged(gone, CaptureMode.WAL)) == (
        "critical",
        "goes back to triggers: replication slot x was dropped",
    )
    stopped = judged(Observed(large), status=Status.SUSPENDED, reason="column n was dropped")
    assert level_and_alert(stopped) == ("critical", "column n was dropped")


def test_triggers_although_the_log_was_asked_for() -> None:
    why = "wal_level is replica"
    assert level_and_alert(judged(Observed(), mode_reason=why, requested_mode="wal")) == (
        "warning",
        f"captured by triggers, not from the log: {why}",
    )
    may = judged(Observed(), mode_reason=why, requested_mode="auto")
    assert (may.level, may.mode_reason) == ("fine", why)


def test_a_database_that_does_not_answer() -> None:
    found = judged(Unavailable("server-unreachable", "PostgreSQL does not answer"))
    assert level_and_alert(found) == ("critical", "database home: PostgreSQL does not answer")
    assert found.lag_bytes is None


@pytest.fixture
def project(dsn: str, application: Application, tmp_path: Path) -> Iterator[Headrace]:
    """A project with one stream table whose source is captured by triggers."""
    application.execute("CREATE TABLE orders (id int PRIMARY KEY, n int)")
    with headrace.connect(dsn, home=tmp_path) as opened:
        put_tables(opened, TableRequest.of("t", "SELECT n FROM orders", {}))
        engine = opened._engine
        (source,) = engine.catalog.state().sources
        with engine.database.session() as connection:
            set_up(engine.database, find_table(connection, "public", "orders"))
            connection.execute("DELETE FROM headrace_capture.recopy_reasons")
            storage = inspect(connection, [source.oid])[source.oid].storage
        put(opened, replace(source, storage=storage, status=Status.ACTIVE))
        yield opened


def put(project: Headrace, *records: Source | DatabaseRecord) -> None:
    with project._engine.writing() as lease:
        project._engine.catalog.commit(Change(put=records), fence=lease.fence)


def follow(project: Headrace, slot: str) -> int:
    """Record the source as one that is read from the log; the position of the slot."""
    engine = project._engine
    database = engine.database
    (source,) = engine.catalog.state().sources
    with database.session() as connection:
        found = find_table(connection, "public", "orders")
        add_to_publication(database, found)
        position = create(database, slot)
        publication = read_publication(connection)
        identity = identities(connection, [found], database.version)[found.oid]
        server = server_identity(connection)
        assert publication is not None
        entry = publication.entries[found.oid]
        following = Following(
            slot,
            connection.info.dbname,
            position,
            publication.oid,
            publication.xmin,
            server.system_identifier,
            server.timeline,
        )
    followed = Followed(
        0, NOON, (entry.oid, entry.xmin), identity.kind, identity.key, identity.index
    )
    put(
        project,
        replace(source, mode=CaptureMode.WAL, followed=followed),
        replace(engine.catalog.state().database(1), following=following),
    )
    return position


@pytest.mark.postgres
def test_a_source_with_triggers(project: Headrace, application: Application) -> None:
    (found,) = project.check_cdc_health()
    assert level_and_alert(found) == ("fine", None)
    assert (found.mode, found.lag, found.position) == ("TRIGGER", None, None)
    assert [one.capture for one in project.status()] == [
        (SourceCapture("public.orders", "TRIGGER"),)
    ]
    assert found.lag_bytes is not None
    application.execute("INSERT INTO orders SELECT n, n FROM generate_series(1, 2000) AS n")
    (later,) = project.check_cdc_health()
    assert later.lag_bytes is not None and later.lag_bytes > found.lag_bytes
    application.execute("ALTER TABLE orders DISABLE TRIGGER ALL")
    (broken,) = project.check_cdc_health()
    assert broken.level == "warning"
    assert broken.alert is not None and broken.alert.startswith("will be copied again: ")


@pytest.mark.postgres
def test_a_source_that_is_read_from_the_log(
    project: Headrace, application: Application, slot: str
) -> None:
    position = follow(project, slot)
    (found,) = project.check_cdc_health()
    left = "read from the log, and its triggers could not be dropped yet"
    assert level_and_alert(found) == ("warning", left)
    tear_down(project._engine.database, project._engine.catalog.state().sources[0].oid)
    now = datetime.now(UTC)
    home = project._engine.catalog.state().database(1)
    put(project, replace(home, cut_at=now - timedelta(hours=1)))
    (found,) = project.check_cdc_health()
    assert (found.mode, found.position, *level_and_alert(found)) == (
        "WAL",
        lsn_to_text(position),
        "fine",
        None,
    )
    assert found.lag is not None and found.lag >= timedelta(hours=1)
    assert found.lag_bytes is not None
    assert (found.slot, found.identity) == (slot, "key")
    (shown,) = project.status()
    assert shown.capture == (SourceCapture("public.orders", "WAL", slot, "stopped"),)
    with project._engine.catalog.lease("a daemon", serves=True):
        (shown,) = project.status()
        assert [one.decoder for one in shown.capture] == ["active"]
    application.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 3000000))")
    (later,) = project.check_cdc_health()
    assert later.lag_bytes is not None and later.lag_bytes >= found.lag_bytes + 3_000_000
    project.set("slot_lag_warning_threshold_mb", 1)
    (late,) = project.check_cdc_health()
    assert late.level == "warning" and slot in (late.alert or "")
    project.set("slot_lag_critical_threshold_mb", 2)
    (too_late,) = project.check_cdc_health()
    assert too_late.level == "critical" and "held back" in (too_late.alert or "")
    drop(project._engine.database, slot)
    (lost,) = project.check_cdc_health()
    assert level_and_alert(lost) == (
        "critical",
        f"goes back to triggers: replication slot {slot} was dropped",
    )
    assert (lost.lag_bytes, lost.position) == (None, None)


@pytest.mark.postgres
def test_one_of_several_databases_is_away(project: Headrace, server: EmbeddedServer) -> None:
    with extra_database(server) as other:
        with psycopg.connect(other, autocommit=True) as sql:
            sql.execute("CREATE TABLE customer (id int PRIMARY KEY)")
        project.attach("crm", other)
        put_tables(project, TableRequest.of("c", "SELECT id FROM crm.public.customer", {}))
    # It was dropped, and so were the connections to it.
    orders, customer = project.check_cdc_health()
    assert (orders.source, *level_and_alert(orders)) == ("public.orders", "fine", None)
    assert (customer.source, customer.database) == ("crm.public.customer", "crm")
    assert customer.level == "critical"
    assert (customer.alert or "").startswith("database crm: ")
