"""The daemon with everything: changes are served by schedule, failures stay where they are."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.catalog.records import StreamTable
from headrace.daemon import loop as service
from headrace.embedded import EmbeddedServer
from headrace.embedded.cluster import ClusterPaths
from headrace.engine.steps import Publish, Step
from headrace.errors import UserError
from tests.alerts import crossings_so_far, heard_so_far, listen
from tests.daemon.running import Running, eventually
from tests.e2e.oracle import assert_served
from tests.embedded.processes import answer, is_running, run, server_pid

pytestmark = pytest.mark.e2e
TOTALS = "SELECT k, count(*) AS n, sum(v) AS v FROM t GROUP BY k"
Client = headrace.Headrace


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "THOROUGH", 0.3)


@pytest.fixture
def client(
    project: headrace.Headrace, sql: psycopg.Connection, dsn: str, tmp_path: Path, spark: object
) -> Iterator[Client]:
    """The project opened once more, over a table of twenty rows."""
    sql.execute("CREATE TABLE t (k int, v int)")
    sql.execute("INSERT INTO t SELECT i % 4, i FROM generate_series(1, 20) i")
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as opened:  # type: ignore[arg-type]
        yield opened


def value(sql: psycopg.Connection, query: str) -> object:
    row = sql.execute(query).fetchone()
    assert row is not None
    return row[0]


def table_of(project: headrace.Headrace, name: str) -> StreamTable:
    found = project._engine.catalog.state().stream_table("public", name)
    assert found is not None
    return found


def drop_triggers(sql: psycopg.Connection) -> None:
    """Take away what captures changes of the table."""
    triggers = sql.execute(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = 't'::regclass AND NOT tgisinternal"
    ).fetchall()
    assert triggers
    for (name,) in triggers:
        sql.execute(f'DROP TRIGGER "{name}" ON t')


def is_idle(running: Running) -> Callable[[], bool]:
    """Whether nothing is published for some looks around."""
    looks: list[tuple[int, ...]] = []

    def look() -> bool:
        tables = running.project._engine.catalog.state().stream_tables
        looks.append(tuple(one.epoch for one in tables))
        return len(looks) > 30 and len(set(looks[-30:])) == 1

    return look


def test_changes_are_served_by_schedule(
    project: headrace.Headrace, client: Client, sql: psycopg.Connection
) -> None:
    """A chain, a diamond, several schedules, manual ones, and what comes and goes meanwhile."""
    with Running(project) as running:
        client.create_stream_tables(
            {
                "head": {"query": "SELECT k, v FROM t WHERE v > 0", "schedule": "calculated"},
                "middle": {"query": "SELECT k, sum(v) AS v FROM head GROUP BY k", "schedule": "1s"},
                "tail": {"query": "SELECT sum(v) AS v FROM middle", "schedule": "50ms"},
                "b": {"query": "SELECT sum(v) AS v FROM t", "schedule": "50ms"},
                "c": "SELECT count(*) AS n FROM t",
                "d": "SELECT b.v, c.n FROM b, c",
                "by_hand": "SELECT count(*) AS n FROM t WHERE v > 0",
                "at_six": {"query": "SELECT count(*) AS n FROM t", "schedule": "0 6 1 1 *"},
            }
        )
        groups: list[tuple[str, ...]] = []

        def seen(when: str, step: Step) -> None:
            if when == "after" and isinstance(step, Publish):
                groups.append(step.tables)

        project._engine.watch, watched = seen, project._engine.watch
        sql.execute("INSERT INTO t VALUES (9, 1000)")
        running.until(lambda: value(sql, "SELECT v FROM tail") == 1210)
        running.until(lambda: sql.execute("SELECT v, n FROM d").fetchone() == (1210, 21))
        project._engine.watch = watched
        diamond = {table_of(client, name).relation for name in "bcd"}
        together = [set(group) for group in groups if diamond & set(group)]
        assert together
        assert all(group == diamond for group in together), "a diamond is published as one"
        assert value(sql, "SELECT n FROM by_hand") == value(sql, "SELECT n FROM at_six") == 20

        client.create_stream_table("late", TOTALS, schedule="50ms")
        client.alter_stream_table("by_hand", schedule="50ms")
        client.alter_stream_table("middle", schedule=None)
        client.drop_stream_table("tail")
        running.until(lambda: value(sql, "SELECT n FROM by_hand") == 21)
        sql.execute("INSERT INTO t VALUES (9, 2000)")
        running.until(lambda: value(sql, "SELECT n FROM late WHERE k = 9") == 2)
        running.until(lambda: value(sql, "SELECT n FROM by_hand") == 22)
        running.until(is_idle(running))
        assert value(sql, "SELECT sum(v) FROM middle") == 1210, "it is manual by now"
        assert client.refresh("middle").mode == "DIFFERENTIAL"
        for name in ("b", "c", "d", "late", "by_hand", "middle"):
            assert client.verify(name, source=True).equal
            assert_served(client, sql, name)


def test_tables_without_rows_wait_for_their_schedules(
    project: headrace.Headrace, client: Client, sql: psycopg.Connection
) -> None:
    given = {"at_six": "0 6 1 1 *", "soon": "200ms", "by_hand": None}
    with Running(project) as running:
        for name, schedule in given.items():
            client.create_stream_table(name, TOTALS, schedule, initialize=False)
        below, above = "SELECT k FROM t", "SELECT count(*) AS n FROM below"
        client.create_stream_table("below", below, initialize=False)
        client.create_stream_table("above", above, "200ms", initialize=False)
        running.until(lambda: all(table_of(client, one).epoch for one in ("soon", "above")))
        sql.execute("INSERT INTO t VALUES (9, 1000)")
        running.until(lambda: value(sql, "SELECT count(*) FROM soon") == 5)
        running.until(is_idle(running))
        assert table_of(client, "below").epoch > 0, "what it reads is filled with it"
        for name in ("at_six", "by_hand"):
            assert (table_of(client, name).epoch, value(sql, f"SELECT count(*) FROM {name}")) == (
                0,
                0,
            )
        assert client.wait_fresh("by_hand") > 0
        assert client.refresh("at_six").mode == "FULL"
    for name in (*given, "below", "above"):
        assert client.refresh(name).mode in ("SKIPPED", "DIFFERENTIAL")
        assert_served(client, sql, name)


def test_nothing_new_costs_nothing(
    project: headrace.Headrace, client: Client, sql: psycopg.Connection
) -> None:
    client.create_stream_table("totals", TOTALS, schedule="10ms")
    with Running(project) as running:
        sql.execute("INSERT INTO t VALUES (1, 1)")
        running.until(lambda: table_of(client, "totals").epoch > 1)
        running.until(is_idle(running))
        engine, steps = project._engine, list[object]()
        engine.watch, watched = lambda when, step: steps.append(step), engine.watch
        known, jobs = engine.catalog.state(), engine.runner.jobs
        running.until(is_idle(running))
        assert (steps, engine.runner.jobs) == ([], jobs)
        assert engine.catalog.state() == known, "no pin, no epoch and no time has moved"
        engine.watch = watched


def test_a_failing_table_is_suspended_and_its_siblings_go_on(
    project: headrace.Headrace, client: Client, sql: psycopg.Connection
) -> None:
    client.set("max_failures", 2)
    client.create_stream_tables(
        {
            "inverse": {"query": "SELECT k, 100 / v AS v FROM t", "schedule": "20ms"},
            "above": {"query": "SELECT sum(v) AS v FROM inverse", "schedule": "20ms"},
            "totals": {"query": TOTALS, "schedule": "20ms"},
        }
    )
    served = value(sql, "SELECT v FROM above")
    listen(sql)
    with Running(project) as running:
        sql.execute("INSERT INTO t VALUES (7, 0)")
        running.until(lambda: table_of(client, "inverse").status == "SUSPENDED")
        heard = [one for one in crossings_so_far(sql) if one[0] == "table"]
        assert heard == [
            ("table", "public.inverse", "error", "critical"),
            ("table", "public.inverse", "suspended", "critical"),
            ("table", "public.inverse", "error", "fine"),
        ]
        lines = client.history("inverse")
        assert [line.error is not None for line in lines[:3]] == [True, True, False]
        sql.execute("INSERT INTO t VALUES (7, 50)")
        running.until(lambda: value(sql, "SELECT n FROM totals WHERE k = 7") == 2)
        assert table_of(client, "above").status == "ACTIVE"
        assert value(sql, "SELECT v FROM above") == served, "it waits for what it reads"

        sql.execute("DELETE FROM t WHERE v = 0")
        assert client.resume("inverse").status == "ACTIVE"
        assert ("table", "public.inverse", "suspended", "fine") in crossings_so_far(sql)
        running.until(lambda: value(sql, "SELECT v FROM above") == served + 2)  # type: ignore[operator]
        sql.execute("INSERT INTO t VALUES (7, 100)")
        running.until(lambda: value(sql, "SELECT v FROM above") == served + 3)  # type: ignore[operator]
    for name in ("inverse", "above", "totals"):
        assert client.verify(name, source=True).equal


def test_sources_to_be_copied_again_and_changed_views_are_followed(
    project: headrace.Headrace, client: Client, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE VIEW seen AS SELECT k, v FROM t WHERE v > 10")
    client.create_stream_tables(
        {
            "totals": {"query": TOTALS, "schedule": "20ms"},
            "viewed": {"query": "SELECT count(*) AS n FROM seen", "schedule": "20ms"},
            "by_hand": "SELECT count(*) AS n FROM seen",
        }
    )
    with Running(project) as running:
        with sql.transaction():
            drop_triggers(sql)
            sql.execute("INSERT INTO t VALUES (5, 5)")
        running.until(lambda: value(sql, "SELECT count(*) FROM totals WHERE k = 5") == 1)
        sql.execute("INSERT INTO t VALUES (5, 6)")
        running.until(lambda: value(sql, "SELECT n FROM totals WHERE k = 5") == 2)

        assert value(sql, "SELECT n FROM viewed") == 10
        sql.execute("CREATE OR REPLACE VIEW seen AS SELECT k, v FROM t")
        running.until(lambda: value(sql, "SELECT n FROM viewed") == 22)
        assert value(sql, "SELECT n FROM by_hand") == 10, "it is manual"
    assert client.refresh("by_hand").mode == "FULL"
    for name in ("totals", "viewed", "by_hand"):
        assert client.verify(name, source=True).equal


def test_a_source_that_was_busy_is_copied_later(
    project: headrace.Headrace, client: Client, sql: psycopg.Connection, dsn: str
) -> None:
    client.create_stream_table("totals", TOTALS, schedule="20ms")
    drop_triggers(sql)
    with psycopg.connect(dsn) as writer:
        writer.execute("INSERT INTO t VALUES (5, 5)")
        with Running(project) as running:
            running.until(lambda: table_of(client, "totals").status == "SUSPENDED")
            assert value(sql, "SELECT count(*) FROM totals WHERE k = 5") == 0
            writer.commit()
            running.until(lambda: value(sql, "SELECT count(*) FROM totals WHERE k = 5") == 1)
            assert table_of(client, "totals").status == "ACTIVE"
    assert client.verify("totals", source=True).equal


def test_a_fuse_stops_a_table_before_it_is_computed(
    project: headrace.Headrace, client: Client, sql: psycopg.Connection
) -> None:
    client.set("max_change_rows", 1000)
    client.create_stream_tables(
        {
            "b": {"query": TOTALS, "schedule": "20ms", "max_change_rows": 5},
            "c": {"query": "SELECT count(*) AS n FROM t", "schedule": "20ms"},
            "d": {"query": "SELECT sum(b.v) AS v, max(c.n) AS n FROM b, c", "schedule": "20ms"},
            "other": {"query": "SELECT sum(v) AS v FROM t", "schedule": "20ms"},
        }
    )
    listen(sql)
    with Running(project) as running:
        sql.execute("INSERT INTO t SELECT 1, i FROM generate_series(101, 105) i")
        running.until(lambda: value(sql, "SELECT n FROM c") == 25)
        jobs = [line.spark_jobs for line in client.history("b")]
        before = {name: table_of(client, name).epoch for name in "bcd"}
        sql.execute("INSERT INTO t SELECT 1, i FROM generate_series(201, 206) i")
        running.until(lambda: table_of(client, "b").status == "SUSPENDED")
        (said,) = (one for one in heard_so_far(sql) if one["about"] == "table")
        assert (said["name"], said["level"]) == ("public.b", "critical")
        # Everybody may listen, so the reason itself is for those who may read the status.
        assert said["message"] == "the stream table is suspended: see headrace.status"
        assert "6 changed rows" in (table_of(client, "b").reason or "")
        running.until(lambda: value(sql, "SELECT v FROM other") == 1946)
        assert {name: table_of(client, name).epoch for name in "bcd"} == before
        failed = client.history("b")[0]
        assert failed.error is not None
        assert failed.error.startswith("change-too-large")
        assert (failed.spark_jobs, len(client.history("b"))) == (0, len(jobs) + 1)
        assert table_of(client, "c").status == "ACTIVE"

        assert client.resume("b").status == "ACTIVE"
        running.until(lambda: sql.execute("SELECT v, n FROM d").fetchone() == (1946, 31))
    for name in ("b", "c", "d"):
        assert client.verify(name, source=True).equal


def test_a_fuse_stops_a_refresh_by_hand(client: Client, sql: psycopg.Connection) -> None:
    client.create_stream_table("totals", TOTALS, max_change_rows=1)
    sql.execute("INSERT INTO t VALUES (1, 1), (1, 2)")
    with pytest.raises(UserError) as raised:
        client.refresh("totals")
    assert raised.value.code == "change-too-large"
    assert table_of(client, "totals").status == "SUSPENDED"
    with pytest.raises(UserError) as raised:
        client.refresh("totals")
    assert raised.value.code == "table-suspended"
    client.resume("totals")
    assert_served(client, sql, "totals")


def test_what_nobody_reads_waits_until_it_is_read(
    project: headrace.Headrace, client: Client, sql: psycopg.Connection
) -> None:
    client.set("lazy_refresh_timeout", 0.1)
    client.create_stream_tables(
        {
            "frozen": {"query": TOTALS, "schedule": "20ms", "tier": "frozen"},
            "cold": {"query": TOTALS, "schedule": "20ms", "tier": "cold"},
            "hot": {"query": TOTALS, "schedule": "20ms"},
        }
    )
    with Running(project) as running:
        epochs = {name: table_of(client, name).epoch for name in ("frozen", "cold")}
        for number in range(3):
            sql.execute("INSERT INTO t VALUES (8, 1)")
            wanted = number + 1
            running.until(
                lambda wanted=wanted: value(sql, "SELECT max(n) FROM hot WHERE k = 8") == wanted
            )
        running.until(is_idle(running))
        assert {name: table_of(client, name).epoch for name in epochs} == epochs
        for name in epochs:
            assert value(sql, f"SELECT count(*) FROM {name} WHERE k = 8") == 0
        running.until(lambda: all(table_of(client, n).epoch > e for n, e in epochs.items()))
        running.until(is_idle(running))
        epochs = {name: table_of(client, name).epoch for name in ("frozen", "cold")}
        assert all(table_of(client, name).own_scans > 0 for name in epochs)
        sql.execute("INSERT INTO t VALUES (8, 1)")
        running.until(lambda: value(sql, "SELECT n FROM hot WHERE k = 8") == 4)
        running.until(is_idle(running))
        assert {name: table_of(client, name).epoch for name in epochs} == epochs, (
            "our own scans are no reads"
        )


def test_it_outlives_a_restart_of_the_server(tmp_path: Path, spark: object) -> None:
    paths = ClusterPaths(tmp_path / "server")
    with (
        EmbeddedServer.open(paths.home) as server,
        headrace.connect(dsn=server.dsn, home=tmp_path, spark=spark) as project,  # type: ignore[arg-type]
    ):
        run(server.dsn, "CREATE TABLE t AS SELECT 1 AS k, 1 AS v")
        project.create_stream_table("totals", TOTALS, schedule="20ms")
        with Running(project) as running:
            run(server.dsn, "INSERT INTO t VALUES (1, 2)")
            os.kill(server_pid(paths), signal.SIGINT)
            eventually(lambda: not is_running(paths))
            with EmbeddedServer.open(paths.home) as again:
                running.until(lambda: running.heard("serving") > 1)
                run(again.dsn, "INSERT INTO t VALUES (1, 3)")
                running.until(lambda: answer(again.dsn, "SELECT v FROM totals") == 6)
        assert running.heard("interrupted")
        assert project.verify("totals", source=True).equal


def test_a_wider_type_is_rebuilt_by_the_daemon(
    project: headrace.Headrace, client: Client, sql: psycopg.Connection
) -> None:
    with Running(project) as running:
        client.create_stream_table("totals", TOTALS, schedule="100ms")
        client.create_stream_table("most", "SELECT max(v) AS v FROM totals", schedule="100ms")
        sql.execute("ALTER TABLE t ALTER v TYPE bigint")
        sql.execute("INSERT INTO t VALUES (1, 5000000000)")
        running.until(lambda: value(sql, "SELECT max(v)::text FROM most") == "5000000045")
        for name in ("totals", "most"):
            assert table_of(client, name).status == "ACTIVE"
            assert not table_of(client, name).awaits_rebuild
            assert client.verify(name, source=True).equal
        sql.execute("UPDATE t SET v = v + 1 WHERE k = 1")
        client.wait_fresh("most")
        assert client.history("totals")[0].mode == "DIFFERENTIAL"
    for name in ("totals", "most"):
        assert_served(client, sql, name)
