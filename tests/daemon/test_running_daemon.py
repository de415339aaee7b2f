"""A daemon while it runs: drained for maintenance, given other settings, and read from."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

import headrace
from headrace.catalog import Change
from headrace.catalog.records import Status
from headrace.daemon import exclusive, refreshes
from headrace.daemon import loop as service
from headrace.daemon.context import DaemonContext, ignore_report
from headrace.daemon.loop import DaemonLoop
from headrace.daemon.wakeup import WakeupListener
from headrace.errors import UserError
from headrace.graph.live import LiveGraph
from headrace.lifecycle import rebuild
from headrace.lifecycle.planned_table import TableRequest
from headrace.observe.table_status import TableStatus
from headrace.schedule.state import ScheduleState
from headrace.schedule.tiers import ReadActivity, ScanCounters
from tests.daemon.daemon_project import QUERY, _often, cold, other, project, sql
from tests.daemon.daemons import in_state
from tests.daemon.running import PATIENCE, Running
from tests.lifecycle.made import put_tables

__all__ = ("_often", "cold", "other", "project", "sql")

pytestmark = pytest.mark.postgres


class TestMaintenance:
    def test_suspending_all_waits_for_what_runs_and_begins_nothing_new(
        self,
        project: headrace.Headrace,
        other: headrace.Headrace,
        sql: psycopg.Connection,
        cold: None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """As `headrace suspend --all` does it, table by table."""
        go_on = threading.Event()
        begun: list[str] = []
        ended: list[str] = []

        def work(_engine: object, _state: object, relations: tuple[str, ...], *_: object) -> Any:
            begun.extend(relations)
            go_on.wait(PATIENCE)
            ended.extend(relations)
            return {}

        monkeypatch.setattr(refreshes, "refresh_group", work)
        put_tables(project, *(TableRequest(f"t{n}", QUERY, schedule="10ms") for n in range(3)))
        with Running(project) as running:
            running.until(lambda: len(begun) == 3)
            with ThreadPoolExecutor(1) as asking:
                first = asking.submit(other.suspend, "t0")
                running.until(lambda: in_state(other._engine.catalog, "running"))
                assert not first.done() and not ended
                go_on.set()
                assert first.result().status == "SUSPENDED"
            assert len(ended) >= 3, "none was cancelled"
            for name in ("t1", "t2"):
                other.suspend(name)
            before = len(begun)
            assert before == len(ended)
            epoch = project._engine.catalog.state().database(1).epoch
            sql.execute("INSERT INTO orders VALUES (2, 2)")
            running.until(lambda: project._engine.catalog.state().database(1).epoch > epoch)
            assert len(begun) == before, "changes are taken in, and nothing is refreshed"

    def test_what_would_go_on_by_itself_is_kept_from_it(
        self, project: headrace.Headrace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine = project._engine
        put_tables(project, TableRequest("wider", QUERY), TableRequest("failed", QUERY))
        (source,) = engine.catalog.state().sources
        awaiting = {"status": Status.SUSPENDED, "reason": "c is wider", "awaits_rebuild": True}
        put(project, "wider", **awaiting, epoch=1, frontier={source.relation: 1})
        put(project, "failed", status=Status.SUSPENDED, reason="division by zero")

        def shown() -> dict[str, tuple[bool, bool]]:
            return {one.name: (one.resumes_by_itself, one.held) for one in project.status()}

        assert shown() == {"public.wider": (True, False), "public.failed": (False, False)}
        assert engine.catalog.state().to_be_rebuilt
        project.suspend("wider")
        assert shown()["public.wider"] == (False, True)
        assert not engine.catalog.state().to_be_rebuilt

        def fail(*_: object) -> None:
            raise UserError("unsupported-source", "it is gone")

        monkeypatch.setattr(rebuild, "_rebuild", fail)
        monkeypatch.setattr(rebuild, "_fits_inputs", lambda *_: False)
        with pytest.raises(UserError, match="it is gone"):
            project.resume("wider")
        assert shown()["public.wider"] == (True, False), "as before it was suspended by hand"

    def test_a_source_that_is_suspended_may_let_its_readers_go_on(
        self, project: headrace.Headrace
    ) -> None:
        engine = project._engine
        put_tables(project, TableRequest("totals", QUERY))
        put(project, "totals", status=Status.SUSPENDED, reason="the source is locked")
        assert not project.status()[0].resumes_by_itself
        with engine.writing() as lease:
            (source,) = engine.catalog.state().sources
            stopped = replace(source, status=Status.SUSPENDED, reason="locked")
            engine.catalog.commit(Change(put=(stopped,)), fence=lease.fence)
        assert project.status()[0].resumes_by_itself


class TestChains:
    def test_a_reader_is_refreshed_although_what_it_reads_is_due_all_the_time(
        self, project: headrace.Headrace, cold: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Refreshes take longer than their schedule, and all tables lack something all the time."""
        begun: list[str] = []
        pause = threading.Event()

        def work(_engine: object, _state: object, relations: tuple[str, ...], *_: object) -> Any:
            begun.extend(relations)
            pause.wait(0.1)
            return {}

        monkeypatch.setattr(refreshes, "refresh_group", work)
        put_tables(project, TableRequest("lower", QUERY, schedule="10ms"))
        above = "SELECT customer FROM lower"
        put_tables(project, TableRequest("upper", above, schedule="10ms"))
        upper = project._engine.catalog.state().stream_table("public", "upper")
        assert upper is not None
        with Running(project) as running:
            running.until(lambda: begun.count(upper.relation) > 2)


class TestRebuilds:
    def test_a_table_that_was_rebuilt_follows_its_schedule_at_once(
        self,
        project: headrace.Headrace,
        sql: psycopg.Connection,
        cold: None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(service, "REBUILD_AGAIN", timedelta(hours=1))
        begun: list[str] = []

        def work(_engine: object, _state: object, relations: tuple[str, ...], *_: object) -> Any:
            begun.extend(relations)
            return {}

        def rebuilt(_engine: object, _schema: str, name: str) -> None:
            put(project, name, status=Status.ACTIVE, reason=None, awaits_rebuild=False)

        monkeypatch.setattr(refreshes, "refresh_group", work)
        monkeypatch.setattr(exclusive, "refresh", rebuilt)
        put_tables(project, TableRequest("totals", QUERY, schedule="10ms"))
        (source,) = project._engine.catalog.state().sources
        put(
            project,
            "totals",
            status=Status.SUSPENDED,
            reason="a column is wider",
            awaits_rebuild=True,
            epoch=1,
            frontier={source.relation: 1},
        )
        with Running(project) as running:
            running.until(lambda: not project._engine.catalog.state().to_be_rebuilt)
            sql.execute("INSERT INTO orders VALUES (2, 2)")
            running.until(lambda: begun)


def put(project: headrace.Headrace, name: str, **values: Any) -> None:
    """Record a stream table with other values."""
    engine = project._engine
    with engine.writing() as lease:
        table = engine.catalog.state().stream_table("public", name)
        assert table is not None
        engine.catalog.commit(Change(put=(replace(table, **values),)), fence=lease.fence)


class TestSettings:
    """What is set while a daemon runs counts from its next look on."""

    def test_workers(
        self,
        project: headrace.Headrace,
        other: headrace.Headrace,
        cold: None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        go_on = threading.Event()
        begun: list[str] = []

        def wait(_engine: object, _state: object, relations: tuple[str, ...], *_: object) -> Any:
            begun.extend(relations)
            go_on.wait(PATIENCE)
            return {}

        monkeypatch.setattr(refreshes, "refresh_group", wait)
        other.set("workers", 1)
        put_tables(project, *(TableRequest(f"t{n}", QUERY, schedule="10ms") for n in range(4)))
        with Running(project) as running:
            running.until(lambda: len(begun) == 1)
            other.set("workers", 3)
            running.until(lambda: len(begun) == 3)
            other.set("workers", 2)
            go_on.set()
            running.until(lambda: len(begun) > 6)

    def test_buffers(
        self,
        project: headrace.Headrace,
        other: headrace.Headrace,
        sql: psycopg.Connection,
        cold: None,
    ) -> None:
        found = (
            "SELECT s.max_buffer_bytes >> 20, c.relpersistence FROM headrace_capture.sources s"
            " JOIN pg_class c ON c.relname = 'buffer_' || s.source"
        )
        put_tables(project, TableRequest("totals", QUERY))
        with Running(project) as running:
            running.until(lambda: project._engine.catalog.state().database(1).epoch)
            assert sql.execute(found).fetchall() == [(1024, "p")]
            other.set("max_buffer_mb", 3)
            running.until(lambda: sql.execute(found).fetchall() == [(3, "p")])
            other.set("unlogged_buffers", True)
            running.until(lambda: sql.execute(found).fetchall() == [(3, "u")])
            other.set("unlogged_buffers", False)
            assert other.convert_buffers() in (("public.orders",), ()), "or the daemon was first"
            assert sql.execute(found).fetchall() == [(3, "p")]


class TestTiers:
    def test_a_read_is_noticed_within_lazy_refresh_timeout(
        self,
        project: headrace.Headrace,
        other: headrace.Headrace,
        dsn: str,
        cold: None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Long before the daemon next looks at everything."""
        monkeypatch.setattr(service, "THOROUGH", 10 * PATIENCE)
        begun: list[str] = []

        def note(_engine: object, _state: object, relations: tuple[str, ...], *_: object) -> Any:
            begun.extend(relations)
            return {}

        monkeypatch.setattr(refreshes, "refresh_group", note)
        other.set("lazy_refresh_timeout", 1.0)
        put_tables(
            project, TableRequest("totals", QUERY, schedule="1h", options={"tier": "frozen"})
        )
        with Running(project) as running:
            running.until(lambda: project._engine.catalog.state().database(1).epoch)
            for _ in range(2):
                before = len(begun)
                running.until(lambda before=before: self._read(dsn) and len(begun) > before)

    @pytest.mark.parametrize(("timeout", "interval"), [(1.0, 0.5), (60.0, 5.0)])
    def test_lazy_refresh_timeout_decides_when_reads_are_counted_and_followed(
        self,
        project: headrace.Headrace,
        monkeypatch: pytest.MonkeyPatch,
        timeout: float,
        interval: float,
    ) -> None:
        """The decisions of the loop, by a clock that is moved by hand."""
        monkeypatch.setattr(service, "THOROUGH", 5.0)
        monkeypatch.setattr(refreshes, "refresh_group", lambda *_: {})
        put_tables(
            project, TableRequest("totals", QUERY, schedule="1h", options={"tier": "frozen"})
        )
        project.set("lazy_refresh_timeout", timeout)
        engine, memory = project._engine, ScheduleState()
        (table,) = engine.catalog.state().stream_tables
        begin = now = datetime.now(UTC)
        sampled: list[timedelta] = []
        total = 0

        def sample(*_: object) -> None:
            sampled.append(now - begin)
            counters = ScanCounters(now, total, 0)
            memory.reads[table.relation] = ReadActivity(begin, counters, total)

        monkeypatch.setattr(service, "sample_reads", sample)
        monkeypatch.setattr(
            service, "time", SimpleNamespace(monotonic=lambda: (now - begin).total_seconds())
        )
        just_before = -timedelta(milliseconds=1)
        with engine.serving(0) as lease, WakeupListener(engine.database) as listener:
            context = DaemonContext(engine, lease, listener, ignore_report, memory, lambda: now)
            loop = DaemonLoop(context, LiveGraph(), threading.Event())
            loop._reload()
            memory.attempted([table.relation], now)
            loop._watch_reads()
            assert not loop._decide(), "nobody has read it"
            assert loop._decide_at == begin + timedelta(seconds=5), "the next full check"
            total, due = 1, begin + timedelta(seconds=timeout)
            now = begin + timedelta(seconds=interval) + just_before
            loop._watch_reads()
            assert len(sampled) == 1, "the next count is not due"
            now = begin + timedelta(seconds=interval)
            loop._watch_reads()
            assert sampled == [timedelta(), timedelta(seconds=interval)]
            assert not loop._decide(), "the latest refresh is too recent"
            assert loop._decide_at == due
            now = due + just_before
            assert not loop._decide()
            now = due
            assert loop._decide()
            assert loop._refreshes.relations == {table.relation}
            loop._end()

    def _read(self, dsn: str) -> bool:
        """Read the table, which may be before the daemon has begun to count."""
        with psycopg.connect(dsn) as reader:
            return reader.execute("SELECT count(*) FROM totals").fetchone() is not None

    def test_the_tier_in_force_is_shown(
        self, project: headrace.Headrace, other: headrace.Headrace, cold: None
    ) -> None:
        options = {"tier": "auto"}
        put_tables(
            project, TableRequest("totals", QUERY, options=options), TableRequest("hot", QUERY)
        )

        def shown(name: str = "totals") -> TableStatus:
            return next(one for one in other.status() if one.name == f"public.{name}")

        assert (shown().tier, shown().reads_per_minute) == ("auto", None), "nobody counts"
        with Running(project) as running:
            running.until(lambda: shown().reads_per_minute is not None)
            table = shown()
            assert (table.tier, table.tier_in_force, table.next_tier) == ("auto", "hot", "cold")
            assert table.next_tier_at is not None
            assert table.next_tier_at > datetime.now(UTC)
            assert (shown("hot").tier_in_force, shown("hot").next_tier) == ("hot", None)
        assert shown().reads_per_minute is None


def test_a_locked_view_keeps_nothing_else_from_being_done(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """A changed view is noticed, and what happened is recorded, whoever locks another."""
    for name in ("locked", "changed"):
        sql.execute(f"CREATE VIEW {name}_view AS SELECT customer FROM orders")
        query = f"SELECT customer FROM {name}_view"
        put_tables(project, TableRequest(name, query, schedule="1h", options={"tier": "auto"}))
    sql.execute(
        "CREATE OR REPLACE VIEW changed_view AS SELECT customer + 1 AS customer FROM orders"
    )
    sql.execute("BEGIN; ALTER VIEW locked_view SET (security_barrier = true)")
    engine = project._engine
    with engine.serving(0) as lease, WakeupListener(engine.database) as listener:
        context = DaemonContext(engine, lease, listener, ignore_report, ScheduleState())
        loop = DaemonLoop(context, LiveGraph(), threading.Event())
        loop._reload()
        loop._watch_reads()
        loop._check_views_and_tiers()
        loop._end()
        assert len(engine.catalog.tiers()) == 2
        assert [piece.request for piece in loop._exclusive._waiting] == [None]
    sql.execute("ROLLBACK")
