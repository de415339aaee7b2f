"""Ctrl-C and cancel: the Spark jobs stop, the old epoch stays, and the next refresh works."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import psycopg
import pytest

import headrace
from headrace.errors import HeadraceError
from tests.daemon.daemons import Daemon, in_state, until
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

ENDLESS = "SELECT count(*) AS n FROM t a, t b, t c WHERE a.v * b.v * c.v = -1"


@pytest.fixture
def endless(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    """A refresh of `n` that would take a minute."""
    sql.execute("CREATE TABLE t (v int)")
    sql.execute("INSERT INTO t SELECT generate_series(1, 5)")
    project.create_stream_table("n", ENDLESS)
    sql.execute("INSERT INTO t SELECT generate_series(6, 1500)")
    return project


def when_running(hr: headrace.Headrace, act: Callable[[], object]) -> threading.Thread:
    """Do it once a query has been running for a while."""

    def wait() -> None:
        deadline = time.monotonic() + 60
        while not hr._engine.runner._running and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(2)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def assert_goes_on(hr: headrace.Headrace, sql: psycopg.Connection) -> None:
    """Nothing runs any more, the old rows are served, and a smaller change goes through."""
    assert sql.execute("SELECT n FROM n").fetchall() == [(0,)]
    deadline = time.monotonic() + 30
    while hr._engine.runner._running:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    sql.execute("DELETE FROM t WHERE v > 6")
    assert hr.refresh("n").mode == "DIFFERENTIAL"
    assert_served(hr, sql, "n")


def test_cancel_leaves_the_old_epoch(endless: headrace.Headrace, sql: psycopg.Connection) -> None:
    thread = when_running(endless, endless.cancel)
    with pytest.raises(HeadraceError) as raised:
        endless.refresh("n")
    thread.join()
    assert raised.value.code == "spark-failed"
    assert_goes_on(endless, sql)


def test_an_interrupt_leaves_the_old_epoch(
    endless: headrace.Headrace, sql: psycopg.Connection
) -> None:
    main = threading.get_ident()
    thread = when_running(endless, lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        endless.refresh("n")
    thread.join()
    assert_goes_on(endless, sql)


def test_an_interrupt_stops_what_a_daemon_does(
    endless: headrace.Headrace, sql: psycopg.Connection
) -> None:
    main = threading.get_ident()
    with headrace.connect(dsn=endless.dsn, home=endless.home) as client:
        with Daemon(endless).serving():
            thread = when_running(endless, lambda: signal.pthread_kill(main, signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):
                client.refresh("n")
            thread.join()
            until(lambda: in_state(client._engine.catalog, "cancelled"))
            assert_goes_on(endless, sql)
            assert in_state(client._engine.catalog, "done")
        assert not client._engine.runner._running
