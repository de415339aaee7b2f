"""Commands while a daemon runs: done by it with the same outcome, listed, cancelled, or lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.catalog import PostgresCatalog, advisory
from headrace.catalog.codec import STREAM_TABLES
from headrace.catalog.records import Lease
from headrace.commands.client import WAITING, OpenRequests
from headrace.commands.run import Done
from headrace.daemon.requests import RequestExecutor
from headrace.engine.steps import AlterTable, Step
from headrace.errors import HeadraceError, InternalError, Transient, Unavailable
from headrace.lifecycle.planned_table import TableRequest
from headrace.source.connection import Database
from tests.daemon.daemons import Daemon, in_state, last_request, until
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

# A daemon that can be killed: it takes the lease, and a request if the arguments say so.
MORTAL = """
import sys, time
from headrace.catalog import PostgresCatalog
from headrace.source.connection import Database

catalog = PostgresCatalog.open(Database(sys.argv[1]).connect)
with catalog.lease("mortal", serves=True) as lease:
    print("serving", flush=True)
    while sys.argv[2] == "takes" and catalog.next_request(lease.fence) is None:
        time.sleep(0.01)
    print("begun", flush=True)
    time.sleep(600)
"""

Open = Callable[[], headrace.Headrace]


@pytest.fixture
def connect(dsn: str, tmp_path: Path) -> Iterator[Open]:
    """Opens the project with one stream table `totals`; Spark never starts."""
    opened: list[headrace.Headrace] = []

    def open_one() -> headrace.Headrace:
        opened.append(headrace.connect(dsn=dsn, home=tmp_path))
        return opened[-1]

    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE orders (customer bigint, amount bigint)")
    query = "SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer"
    put_tables(open_one(), TableRequest("totals", query))
    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def client(connect: Open) -> headrace.Headrace:
    return connect()


@pytest.fixture
def daemon(connect: Open) -> Daemon:
    """Not serving yet."""
    return Daemon(connect())


def newest_fence(client: headrace.Headrace) -> int:
    with psycopg.connect(client.dsn) as sql:
        row = sql.execute("SELECT fence FROM headrace.lease").fetchone()
    assert row is not None
    return int(row[0])


def error_of(act: Callable[[], object]) -> HeadraceError:
    with pytest.raises(HeadraceError) as raised:
        act()
    return raised.value


class TestServed:
    def test_commands_are_done_by_the_daemon(
        self, client: headrace.Headrace, daemon: Daemon
    ) -> None:
        with daemon.serving():
            assert client.suspend("totals").status == "SUSPENDED"
            assert client.resume("totals").status == "ACTIVE"
            assert client.alter_stream_table("totals", schedule="30s").schedule == "30s"
            assert client.alter_stream_table("totals", schedule=None).schedule is None
            altered = client.alter_stream_table("totals", rename_to='"Sums"', tier="warm")
            assert altered.name == "public.Sums"
            assert client.run('ALTER STREAM TABLE "Sums" SUSPEND') == (
                Done("suspended", "public.Sums"),
            )
            assert client.status()[0].status == "SUSPENDED"
            client.drop_stream_table('"Sums"')
            assert client.status() == ()
            assert newest_fence(client) == daemon.fence, "nobody else has had the lease"
        found = [client._engine.catalog.request_state(number) for number in range(1, 8)]
        assert [one.command["verb"] for one in found if one] == [
            *("suspend", "resume", "alter", "alter", "alter", "run", "drop")
        ]
        assert {(one.state, one.fence) for one in found if one} == {("done", daemon.fence)}
        assert client._engine.catalog.request_state(8) is None

    def test_without_a_daemon_they_are_done_here(self, client: headrace.Headrace) -> None:
        before = newest_fence(client)
        assert client.suspend("totals").status == "SUSPENDED"
        assert newest_fence(client) == before + 1
        assert last_request(client._engine.catalog) is None

    @pytest.mark.parametrize(
        "act",
        [
            lambda hr: hr.suspend("nothing"),
            lambda hr: hr.refresh("nothing", mode="FULL"),
            lambda hr: hr.reinit("nothing"),
            lambda hr: hr.verify("totals"),
            lambda hr: hr.create_stream_table("x", "SELECT nothing FROM orders"),
            lambda hr: hr.create_or_replace_stream_table("x", "SELECT 1 FROM nowhere"),
            lambda hr: hr.alter_stream_table("totals", rename_to="orders"),
            lambda hr: hr.run("ALTER STREAM TABLE totals SUSPEND; DROP STREAM TABLE nothing"),
        ],
    )
    def test_an_error_is_the_same_as_here(
        self,
        act: Callable[[headrace.Headrace], object],
        client: headrace.Headrace,
        daemon: Daemon,
    ) -> None:
        here = error_of(lambda: act(client))
        with daemon.serving():
            there = error_of(lambda: act(client))
            assert in_state(client._engine.catalog, "failed")
            assert client.suspend("totals").status == "SUSPENDED", "the daemon goes on"
        assert (type(there), str(there)) == (type(here), str(here))

    def test_the_daemons_own_process_may_ask_too(self, daemon: Daemon) -> None:
        with daemon.serving():
            assert daemon.project.suspend("totals").status == "SUSPENDED"
        assert in_state(daemon.engine.catalog, "done")

    def test_it_cannot_be_uninstalled(self, client: headrace.Headrace, daemon: Daemon) -> None:
        with daemon.serving():
            error = error_of(client.uninstall)
        assert (type(error), error.code) == (Unavailable, "lease-held")
        assert error.hint == "Stop it first."
        assert [table.name for table in client.status()] == ["public.totals"]

    def test_a_second_daemon_does_not_wait(self, connect: Open, daemon: Daemon) -> None:
        with daemon.serving():
            second = connect()._engine.serving(wait=3600)
            assert error_of(second.__enter__).code == "lease-held"

    def test_a_bug_is_reported_and_survived(
        self, client: headrace.Headrace, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stumble(when: str, step: Step) -> None:
            if isinstance(step, AlterTable):
                raise ZeroDivisionError("of all things")

        daemon.engine.watch = stumble
        with daemon.serving():
            error = error_of(lambda: client.suspend("totals"))
            assert isinstance(error, InternalError)
            assert error.detail == "ZeroDivisionError: of all things"
            client.drop_stream_table("totals")
        assert in_state(client._engine.catalog, "done")


def test_a_script_keeps_the_lease_from_end_to_end(client: headrace.Headrace) -> None:
    before = newest_fence(client)
    script = "ALTER STREAM TABLE totals SUSPEND; ALTER STREAM TABLE totals RESUME"
    assert [done.act for done in client.run(script)] == ["suspended", "resumed"]
    assert newest_fence(client) == before + 1


class TestProgressAndCancel:
    def test_progress_arrives(self, client: headrace.Headrace, daemon: Daemon) -> None:
        seen: list[tuple[str, int, int]] = []
        arrived = threading.Event()

        def show(*progress: str | int) -> None:
            seen.append(progress)  # type: ignore[arg-type]
            if progress[0] == "copying":
                arrived.set()

        def work(when: str, step: Step) -> None:
            if isinstance(step, AlterTable) and when == "before":
                daemon.engine.progress("copying", 1, 3)
                assert arrived.wait(60)

        client._engine.progress = show
        daemon.engine.watch = work
        reported: list[tuple[str, int, int]] = []
        daemon.engine.progress = lambda *progress: reported.append(progress)
        with daemon.serving():
            client.suspend("totals")
        assert seen[-1] == ("copying", 1, 3)
        assert reported == [("copying", 1, 3)], "the daemon reports it, too"
        assert {what for what, _, _ in seen} <= {WAITING, "copying"}

    def test_an_interrupt_cancels_what_runs(
        self, client: headrace.Headrace, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        performing: list[int] = []
        stopped: list[int | None] = []

        def interrupt(what: str, done: int, total: int) -> None:
            if what == "copying":
                raise KeyboardInterrupt

        def work(when: str, step: Step) -> None:
            if isinstance(step, AlterTable) and when == "before" and not performing:
                performing.append(threading.get_ident())
                until(lambda: bool(daemon.engine.progress("copying", 1, 3)))

        client._engine.progress = interrupt
        daemon.engine.watch = work
        monkeypatch.setattr(daemon.engine.runner, "cancel", stopped.append)
        with daemon.serving():
            with pytest.raises(KeyboardInterrupt):
                client.suspend("totals")
            until(lambda: in_state(client._engine.catalog, "cancelled"))
            assert client.status()[0].status == "ACTIVE"
            client._engine.progress = lambda what, done, total: None
            assert client.suspend("totals").status == "SUSPENDED", "the daemon goes on"
        assert set(stopped) == set(performing), "only the calls of the thread that performed it"
        cancelled = client._engine.catalog.request_state(1)
        assert cancelled is not None
        assert cancelled.error is not None
        assert cancelled.error["code"] == "request-cancelled"

    def test_an_interrupt_withdraws_what_waits(
        self, client: headrace.Headrace, daemon: Daemon
    ) -> None:
        def interrupt(what: str, done: int, total: int) -> None:
            assert (what, done, total) == (WAITING, 0, 0)
            raise KeyboardInterrupt

        client._engine.progress = interrupt
        with daemon.engine.serving(60) as lease:
            with pytest.raises(KeyboardInterrupt):
                client.suspend("totals")
            assert in_state(client._engine.catalog, "cancelled")
            assert not RequestExecutor(daemon.engine).serve_next(lease)

    def test_what_was_cancelled_before_it_began_is_not_begun(
        self, client: headrace.Headrace, daemon: Daemon
    ) -> None:
        desk, catalog = RequestExecutor(daemon.engine), client._engine.catalog
        with daemon.engine.serving(60) as lease, ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(client.suspend, "totals")
            until(lambda: in_state(catalog, "queued"))
            request = desk.take(lease)
            assert request is not None
            daemon.engine.catalog.cancel_request(request.id)
            assert not desk.perform(request)
            with pytest.raises(Transient) as raised:
                waiting.result(60)
        assert raised.value.code == "request-cancelled"
        assert in_state(catalog, "cancelled")
        assert client.status()[0].status == "ACTIVE"

    def test_cancel_stops_what_this_client_asked_for_and_nothing_else(
        self, client: headrace.Headrace, connect: Open, daemon: Daemon
    ) -> None:
        other, catalog = connect(), daemon.engine.catalog
        with daemon.engine.serving(60) as lease, ThreadPoolExecutor(2) as threads:
            first = threads.submit(client.suspend, "totals")
            until(lambda: client._engine.part(OpenRequests).ids == {1})
            second = threads.submit(other.alter_stream_table, "totals", tier="cold")
            until(lambda: other._engine.part(OpenRequests).ids == {2})
            client.cancel()
            assert error_of(lambda: first.result(60)).code == "request-cancelled"
            assert RequestExecutor(daemon.engine).serve_next(lease)
            assert second.result(60).name == "public.totals"
        assert catalog.state().stream_tables[0].options == {"tier": "cold"}
        assert client.status()[0].status == "ACTIVE"
        assert (
            client._engine.part(OpenRequests).ids == other._engine.part(OpenRequests).ids == set()
        )

    def test_what_somebody_else_withdraws_is_cancelled(
        self, client: headrace.Headrace, daemon: Daemon
    ) -> None:
        with daemon.engine.serving(60), ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(client.suspend, "totals")
            until(lambda: in_state(daemon.engine.catalog, "queued"))
            assert daemon.engine.catalog.withdraw_request(1)
            with pytest.raises(Transient) as raised:
                waiting.result(60)
        assert raised.value.code == "request-cancelled"


class TestDeath:
    def test_a_daemon_that_stops_leaves_the_queue_to_those_who_asked(
        self, client: headrace.Headrace, daemon: Daemon
    ) -> None:
        catalog = daemon.engine.catalog
        with ThreadPoolExecutor(1) as threads:
            with daemon.engine.serving(60) as lease:
                waiting = threads.submit(client.suspend, "totals")
                until(lambda: in_state(catalog, "queued"))
            assert waiting.result(60).status == "SUSPENDED"
        assert in_state(catalog, "cancelled")
        assert newest_fence(client) == lease.fence + 1, "it was done in place"

    def test_the_next_daemon_takes_what_still_waits(
        self, client: headrace.Headrace, daemon: Daemon
    ) -> None:
        catalog = daemon.engine.catalog
        request = catalog.request({"verb": "dance"}, "somebody")
        with daemon.serving():
            until(lambda: in_state(catalog, "failed"))
        found = catalog.request_state(request)
        assert found is not None
        assert found.error is not None
        assert found.error["code"] == "invalid-option"

    @pytest.mark.parametrize("successor", [False, True])
    def test_a_daemon_that_goes_away_while_it_works_leaves_an_unknown_outcome(
        self, successor: bool, client: headrace.Headrace, daemon: Daemon, connect: Open
    ) -> None:
        next_daemon = Daemon(connect())
        with ThreadPoolExecutor(1) as threads:
            with daemon.engine.serving(60) as lease:
                waiting = threads.submit(client.suspend, "totals")
                until(lambda: in_state(daemon.engine.catalog, "queued"))
                request = daemon.engine.catalog.next_request(lease.fence)
                assert request is not None
            if successor:
                with next_daemon.serving():
                    error = error_of(lambda: waiting.result(60))
            else:
                error = error_of(lambda: waiting.result(60))
        assert (type(error), error.code) == (Transient, "request-lost")
        assert in_state(client._engine.catalog, "failed")
        daemon.engine.catalog.finish(request.id, result="too late")
        assert in_state(client._engine.catalog, "failed")

    @pytest.mark.parametrize("takes", [False, True])
    def test_kill(self, takes: bool, client: headrace.Headrace) -> None:
        arguments = [sys.executable, "-c", MORTAL, client.dsn, "takes" if takes else "waits"]
        with (
            subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as mortal,
            ThreadPoolExecutor(1) as threads,
        ):
            try:
                assert mortal.stdout is not None
                assert mortal.stdout.readline() == "serving\n"
                waiting = threads.submit(client.suspend, "totals")
                until(lambda: in_state(client._engine.catalog, "running" if takes else "queued"))
            finally:
                os.kill(mortal.pid, signal.SIGKILL)
            if takes:
                assert error_of(lambda: waiting.result(60)).code == "request-lost"
            else:
                assert waiting.result(60).status == "SUSPENDED"
        assert in_state(client._engine.catalog, "failed" if takes else "cancelled")
        assert client.resume("totals").status == "ACTIVE", "nobody stands in the way"

    def test_a_thread_that_is_ended_still_ends_its_request(
        self, client: headrace.Headrace, daemon: Daemon
    ) -> None:
        def leave(when: str, step: Step) -> None:
            if isinstance(step, AlterTable):
                raise SystemExit

        daemon.engine.watch = leave
        with pytest.raises(SystemExit), daemon.serving():
            assert error_of(lambda: client.suspend("totals")).code == "request-lost"


def test_a_daemon_that_comes_while_one_waits_for_the_lease_is_asked(
    client: headrace.Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody writes; a command waits for that; then the writer is one who serves."""
    lease, wanted = client._engine.catalog.lease, threading.Event()

    def wait(holder: str, wait: float) -> AbstractContextManager[Lease]:
        wanted.set()
        return lease(holder, wait)

    monkeypatch.setattr(client._engine.catalog, "lease", wait)
    other = PostgresCatalog(Database(client.dsn).connect)
    result = STREAM_TABLES.encode(client._engine.catalog.state().stream_tables[0])
    client.set("lease_wait", 3600)
    with (
        psycopg.connect(client.dsn, autocommit=True) as writer,
        ThreadPoolExecutor(1) as threads,
    ):
        writer.execute("SELECT pg_advisory_lock(%s, %s)", advisory.WRITER)
        waiting = threads.submit(client.suspend, "totals")
        assert wanted.wait(60)
        assert last_request(other) is None
        writer.execute("UPDATE headrace.lease SET serves = true, backend = pg_backend_pid()")
        until(lambda: in_state(other, "queued"))
        request = other.next_request(newest_fence(client))
        assert request is not None
        assert request.command["verb"] == "suspend"
        other.finish(request.id, result=result)
        assert waiting.result(60).name == "public.totals"
    other.close()
