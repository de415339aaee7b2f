"""The daemon without Spark: the lease, requests, failures, lost servers, reads, `headrace up`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import headrace
from headrace.catalog import Change
from headrace.catalog.records import Status, StreamTable
from headrace.daemon.context import DaemonContext, ignore_report
from headrace.daemon.exclusive import ExclusiveQueue
from headrace.daemon.loop import DaemonLoop
from headrace.daemon.reads import sample_reads
from headrace.daemon.wakeup import WakeupListener
from headrace.errors import HeadraceError, Transient, Unavailable, UserError
from headrace.graph.live import LiveGraph
from headrace.lifecycle.planned_table import TableRequest
from headrace.publish.apply import apply_change
from headrace.publish.own_scans import counting_own_scans
from headrace.refresh import run as sweep
from headrace.relations.visible_change import VisibleChange
from headrace.schedule.state import ScheduleState
from headrace.store import WEIGHT
from tests.alerts import crossings_so_far, listen
from tests.daemon.daemon_project import QUERY, _often, cold, other, project, sql
from tests.daemon.daemons import in_state, last_request
from tests.daemon.running import Running, Up, eventually
from tests.lifecycle.made import put_tables

__all__ = ("_often", "cold", "other", "project", "sql")

pytestmark = pytest.mark.postgres


def failing_with(monkeypatch: pytest.MonkeyPatch, error: HeadraceError) -> list[str]:
    """Have the computation of every table fail; the names of those that were tried."""
    tried: list[str] = []

    def fail(_engine: object, attempts: Any, *_: object) -> None:
        tried.extend(one.table.name for one in attempts)
        raise error

    monkeypatch.setattr(sweep, "advance", fail)
    return tried


def table_of(project: headrace.Headrace, name: str = "totals") -> StreamTable:
    found = project._engine.catalog.state().stream_table("public", name)
    assert found is not None
    return found


class TestLease:
    def test_a_second_one_is_refused_and_the_error_names_the_first(
        self, project: headrace.Headrace, other: headrace.Headrace
    ) -> None:
        with Running(project):
            holder = other._engine.catalog.serving()
            assert holder is not None
            with pytest.raises(Unavailable) as raised:
                other.daemon().run(0)
            assert raised.value.code == "lease-held"
            assert holder.holder in str(raised.value)
        assert other._engine.catalog.serving() is None, "it is given up in the end"

    def test_commands_are_left_to_it(
        self, project: headrace.Headrace, other: headrace.Headrace
    ) -> None:
        put_tables(project, TableRequest("totals", QUERY))
        with Running(project) as running:
            assert other.suspend("totals").status == "SUSPENDED"
            assert in_state(other._engine.catalog, "done")
            assert running.heard("suspend, asked for by")
            with pytest.raises(UserError, match="does not exist"):
                other.suspend("nothing")
            other.drop_stream_table("totals")
            assert other.status() == ()

    def test_what_was_not_begun_is_given_back(
        self, project: headrace.Headrace, other: headrace.Headrace
    ) -> None:
        engine = project._engine
        with engine.serving(0) as lease, WakeupListener(engine.database) as listener:
            number = other._engine.catalog.request({"verb": "suspend"}, "someone")
            alone = ExclusiveQueue(
                DaemonContext(engine, lease, listener, ignore_report, ScheduleState())
            )
            assert alone.take_request()
            found = last_request(other._engine.catalog)
            assert found is not None
            assert (found.id, found.state) == (number, "running")
            alone.end()
            assert in_state(other._engine.catalog, "queued")

    def test_its_desk_is_cleared_when_it_ends(self, project: headrace.Headrace) -> None:
        engine = project._engine
        before = engine.progress, engine.watch
        with Running(project) as running:
            running.until(lambda: (engine.progress, engine.watch) != before)
        assert (engine.progress, engine.watch) == before


class TestFailures:
    def test_after_so_many_it_is_suspended_with_an_alert(
        self,
        project: headrace.Headrace,
        sql: psycopg.Connection,
        monkeypatch: pytest.MonkeyPatch,
        cold: None,
    ) -> None:
        tried = failing_with(monkeypatch, UserError("query-failed", "division by zero"))
        project.set("max_failures", 3)
        put_tables(project, TableRequest("totals", QUERY, schedule="10ms"))
        listen(sql)
        with Running(project) as running:
            running.until(lambda: table_of(project).status is Status.SUSPENDED)
        reason = "suspended after 3 failures in a row: division by zero"
        assert (table_of(project).reason, tried) == (reason, ["totals"] * 3)
        assert crossings_so_far(sql) == [
            ("daemon", "daemon", "watching", "fine"),
            ("table", "public.totals", "error", "critical"),
            ("table", "public.totals", "suspended", "critical"),
            ("table", "public.totals", "error", "fine"),
        ]
        history = project.history("totals")
        assert [line.error for line in history] == ["query-failed: division by zero"] * 3

    def test_what_may_pass_is_borne_longer(
        self, project: headrace.Headrace, monkeypatch: pytest.MonkeyPatch, cold: None
    ) -> None:
        tried = failing_with(monkeypatch, Transient("spark-failed", "an executor was lost"))
        project.set("max_failures", 1)
        put_tables(project, TableRequest("totals", QUERY, schedule="10ms"))
        with Running(project) as running:
            running.until(lambda: table_of(project).status is Status.SUSPENDED)
        assert tried == ["totals"] * 4

    def test_what_is_missing_outside_suspends_nothing(
        self, project: headrace.Headrace, monkeypatch: pytest.MonkeyPatch, cold: None
    ) -> None:
        tried = failing_with(monkeypatch, Unavailable("store-full", "the disk is full"))
        project.set("max_failures", 1)
        put_tables(project, TableRequest("totals", QUERY, schedule="10ms"))
        with Running(project) as running:
            running.until(lambda: len(tried) >= 8)
            (known,) = running.daemon._memory.outages.values()
            assert known >= 7, "the waits grow"
        assert (table_of(project).status, table_of(project).failures) == (Status.ACTIVE, 0)

    def test_a_manual_table_is_left_alone(
        self, project: headrace.Headrace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tried = failing_with(monkeypatch, UserError("query-failed", "division by zero"))
        project.set("max_failures", 1)
        put_tables(
            project, TableRequest("by_hand", QUERY), TableRequest("timed", QUERY, schedule="10ms")
        )
        monkeypatch.setattr(DaemonLoop, "_warm_up", lambda self: None)
        with Running(project) as running:
            running.until(lambda: table_of(project, "timed").status is Status.SUSPENDED)
        assert tried == ["timed"]
        assert table_of(project, "by_hand").status is Status.ACTIVE


class TestLost:
    def test_it_goes_on_when_all_connections_were_cut(
        self, project: headrace.Headrace, other: headrace.Headrace, sql: psycopg.Connection
    ) -> None:
        put_tables(project, TableRequest("totals", QUERY))
        with Running(project) as running:
            sql.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            running.until(lambda: running.heard("serving") == 2)
            assert running.heard("interrupted") >= 1
            eventually(lambda: suspended(other))

    def test_it_starts_again_when_only_the_lease_was_cut(
        self, project: headrace.Headrace, sql: psycopg.Connection
    ) -> None:
        with Running(project) as running:
            sql.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
                " AND granted AND database = (SELECT oid FROM pg_database"
                " WHERE datname = current_database())"
            )
            running.until(lambda: running.heard("serving") == 2)


def suspended(project: headrace.Headrace) -> bool:
    """Whether a command is done, once the client's own connections are back, too."""
    try:
        return project.suspend("totals").status == "SUSPENDED"
    except (Transient, Unavailable):
        return False


class TestEars:
    def test_a_request_and_a_call_end_the_waiting(
        self, project: headrace.Headrace, other: headrace.Headrace
    ) -> None:
        with WakeupListener(project._engine.database) as listener:
            assert not listener.wait(0.0)
            listener.wake()
            began = time.monotonic()
            assert not listener.wait(60.0), "a call is no request"
            other._engine.catalog.request({"verb": "suspend"}, "someone")
            assert listener.wait(60.0)
            assert time.monotonic() - began < 60
            assert not listener.wait(0.0), "it is heard once"
        listener.wake()

    def test_what_is_heard_while_it_asks_is_not_lost(
        self, project: headrace.Headrace, other: headrace.Headrace
    ) -> None:
        put_tables(project, TableRequest("totals", QUERY))
        (source,) = project._engine.catalog.state().sources
        with WakeupListener(project._engine.database) as listener:
            other._engine.catalog.request({"verb": "suspend"}, "someone")
            listener.probe.since([source.oid], "1:1:")
            assert listener.wait(60.0)


class TestIdle:
    def test_ticks_without_pending_changes_write_nothing_and_start_nothing(
        self, project: headrace.Headrace, cold: None
    ) -> None:
        put_tables(project, TableRequest("totals", QUERY))
        engine = project._engine
        steps: list[object] = []
        with engine.serving(0) as lease, WakeupListener(engine.database) as listener:
            shift = DaemonContext(engine, lease, listener, ignore_report, ScheduleState())
            service = DaemonLoop(shift, LiveGraph(), Running(project).daemon._stop)
            while service._tick(asked=True):
                pass
            known = engine.catalog.state()
            engine.watch = lambda when, step: steps.append(step)
            for _ in range(20):
                service._looked_at = -1e9
                assert not service._tick(asked=True)
            assert engine.catalog.state() == known
            service._end()
        assert (steps, engine.runner.jobs) == ([], 0)


class TestReads:
    def test_our_own_scans_are_counted_once_and_apart(
        self, project: headrace.Headrace, sql: psycopg.Connection
    ) -> None:
        put_tables(project, TableRequest("totals", QUERY, options={"tier": "frozen"}))
        engine, table = project._engine, table_of(project)

        def scan(transaction: psycopg.Connection) -> None:
            with counting_own_scans(transaction, [table]):
                transaction.execute("SELECT count(*) FROM public.totals")
                transaction.execute("SELECT count(*) FROM public.totals")

        def flush(transaction: psycopg.Connection) -> None:
            transaction.execute("SELECT pg_stat_force_next_flush()")

        with engine.writing() as lease:
            engine.catalog.commit(Change(), fence=lease.fence, apply=flush)
            before = scans(sql)
            for _ in range(3):
                engine.catalog.commit(Change(), fence=lease.fence, apply=scan)
            engine.catalog.commit(Change(), fence=lease.fence, apply=flush)
        assert table_of(project).own_scans == 6
        assert scans(sql) - before == 6, "as PostgreSQL counts them"

    def test_reads_of_others_are_noticed(
        self, project: headrace.Headrace, sql: psycopg.Connection
    ) -> None:
        put_tables(
            project,
            TableRequest("totals", QUERY, options={"tier": "frozen"}),
            TableRequest("hot", QUERY),
        )
        engine, memory = project._engine, ScheduleState()
        settings = engine.settings(engine.catalog.state())

        def total() -> int:
            state, now = engine.catalog.state(), datetime.now(UTC)
            sample_reads(engine, state, settings, memory, now)
            return memory.reads[table_of(project).relation].total

        assert total() == 0
        sql.execute("SELECT count(*) FROM totals")
        eventually(lambda: total() == 1)
        assert memory.reads.keys() == {table_of(project).relation}, "only where it matters"

    def test_scans_of_partitions_are_those_of_their_table(
        self, project: headrace.Headrace, sql: psycopg.Connection
    ) -> None:
        options = {"tier": "frozen", "partition_by": "customer"}
        put_tables(project, TableRequest("totals", QUERY, options=options))
        engine, table, memory = project._engine, table_of(project), ScheduleState()
        settings = engine.settings(engine.catalog.state())

        def publish(transaction: psycopg.Connection) -> None:
            rows = pa.table({WEIGHT: [1, 1], "c1": [1, 2], "c2": [Decimal(1), Decimal(2)]})
            with counting_own_scans(transaction, [table]):
                apply_change(transaction, table, VisibleChange.of(rows))
                transaction.execute("SELECT count(*) FROM public.totals")

        def flush(transaction: psycopg.Connection) -> None:
            transaction.execute("SELECT pg_stat_force_next_flush()")

        with engine.writing() as lease:
            engine.catalog.commit(Change(), fence=lease.fence, apply=publish)
            engine.catalog.commit(Change(), fence=lease.fence, apply=flush)

        def total() -> int:
            sample_reads(engine, engine.catalog.state(), settings, memory, datetime.now(UTC))
            return memory.reads[table.relation].total

        assert table_of(project).own_scans >= 2
        eventually(lambda: total() == 0 and memory.reads[table.relation].last.scans >= 2)
        assert memory.reads[table.relation].last.scans == table_of(project).own_scans
        sql.execute("SELECT count(*) FROM totals WHERE customer = 1")
        eventually(lambda: total() == 1)
        sql.execute("SELECT count(*) FROM totals")
        eventually(lambda: total() == 3)


def scans(sql: psycopg.Connection) -> int:
    row = sql.execute(
        "SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0)"
        " FROM pg_stat_user_tables WHERE relname = 'totals'"
    ).fetchone()
    assert row is not None
    return int(row[0])


class TestUp:
    def test_on_an_empty_project_until_it_is_stopped(
        self, project: headrace.Headrace, dsn: str, tmp_path: Path
    ) -> None:
        with Up(tmp_path, dsn) as first:
            first.until_serving()
            assert project._engine.catalog.serving() is not None
            with Up(tmp_path, dsn, "--wait", "0") as second:
                assert second.process.wait(120) == Unavailable.exit_code
                assert "[lease-held]" in second.said
                assert str(first.process.pid) in second.said
            assert first.end() == 0, first.said
            assert first.said.rstrip().endswith("stopped")
        assert project._engine.catalog.serving() is None

    def test_a_server_that_does_not_answer_is_said(self, tmp_path: Path) -> None:
        with Up(tmp_path, "postgresql://nobody@127.0.0.1:1/nothing") as up:
            assert up.process.wait(120) == Unavailable.exit_code
            assert "[server-unreachable]" in up.said

    def test_a_database_that_is_read_only_by_default_is_served_all_the_same(
        self, project: headrace.Headrace, dsn: str, sql: psycopg.Connection, tmp_path: Path
    ) -> None:
        name = sql.info.dbname
        sql.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        with Up(tmp_path, dsn) as up:
            up.until_serving()
            assert up.end() == 0, up.said


def test_a_server_that_is_back_is_noticed_within_seconds(
    project: headrace.Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it was away: the pauses between two attempts stay short."""
    pauses: list[float] = []
    daemon = project.daemon()
    # As if it had served before.
    daemon._listener = WakeupListener(project._engine.database)

    def away(_wait: float) -> Any:
        raise Unavailable("server-unreachable", "it is away")

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        if len(pauses) == 30:
            daemon.stop()
        return False

    monkeypatch.setattr(project._engine, "serving", away)
    monkeypatch.setattr(daemon._stop, "wait", wait)
    monkeypatch.setattr(daemon._random, "random", lambda: 1.0)
    try:
        daemon.run(0)
    finally:
        daemon._listener.close()
    assert len(pauses) == 30
    assert max(pauses) <= 5
