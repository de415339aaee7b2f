"""The server is shared, and stopped with the last one that has it open, whatever that one's end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import psycopg
import pytest

from headrace.embedded import EmbeddedServer
from headrace.embedded.cluster import ClusterPaths
from tests.embedded.processes import Holder, answer, eventually, is_running, server_pid

pytestmark = pytest.mark.postgres

Hold = Callable[[], Holder]


def test_two_processes_share_one_server(paths: ClusterPaths, hold: Hold) -> None:
    with EmbeddedServer.open(paths.home) as server:
        first = server_pid(paths)
        other = hold()
        assert other.dsn == server.dsn
        assert server_pid(paths) == first
        other.leave()
        assert is_running(paths)
        assert answer(server.dsn, "SELECT 1") == 1
    assert not is_running(paths)


def test_the_opener_may_leave_first(paths: ClusterPaths, hold: Hold) -> None:
    server = EmbeddedServer.open(paths.home)
    other = hold()
    server.close()
    assert answer(other.dsn, "SELECT 1") == 1
    other.leave()
    assert not is_running(paths)


def test_opening_twice_needs_closing_twice(paths: ClusterPaths) -> None:
    first, second = EmbeddedServer.open(paths.home), EmbeddedServer.open(paths.home)
    first.close()
    first.close()
    assert answer(second.dsn, "SELECT 1") == 1
    second.close()
    assert not is_running(paths)


def test_many_processes_open_at_once(paths: ClusterPaths, hold: Hold) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(6) as pool:
        holders = list(pool.map(lambda _: hold(), range(6)))
        assert len({holder.dsn for holder in holders}) == 1
        list(pool.map(Holder.leave, holders))
    assert not is_running(paths)


def test_a_killed_holder_does_not_keep_the_server(paths: ClusterPaths, hold: Hold) -> None:
    server = EmbeddedServer.open(paths.home)
    hold().send(signal.SIGKILL)
    assert answer(server.dsn, "SELECT 1") == 1
    server.close()
    assert not is_running(paths)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_server_stops_when_its_only_holder_dies(
    paths: ClusterPaths, hold: Hold, number: signal.Signals
) -> None:
    other = hold()
    assert is_running(paths)
    other.send(number)
    eventually(lambda: not is_running(paths))
    assert not (paths.data / "postmaster.pid").exists()


def test_a_killed_starter_does_not_stop_the_server(paths: ClusterPaths, hold: Hold) -> None:
    starter = hold()
    with EmbeddedServer.open(paths.home) as server:
        starter.send(signal.SIGKILL)
        time.sleep(0.3)
        assert answer(server.dsn, "SELECT 1") == 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_close_its_parents_server(paths: ClusterPaths) -> None:
    with EmbeddedServer.open(paths.home) as server:
        child = os.fork()
        if child == 0:
            server.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert answer(server.dsn, "SELECT 1") == 1
    assert not is_running(paths)


def test_closing_ends_open_connections(paths: ClusterPaths) -> None:
    server = EmbeddedServer.open(paths.home)
    connection = psycopg.connect(server.dsn)
    connection.execute("CREATE TABLE t (x int)")
    server.close()
    assert not is_running(paths)
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    connection.close()


def test_the_server_is_out_of_reach_of_the_terminal(paths: ClusterPaths) -> None:
    with EmbeddedServer.open(paths.home):
        pid = server_pid(paths)
        assert os.getsid(pid) != os.getsid(0)
        assert os.getpgid(pid) != os.getpgid(0)


def test_attaching_is_cheap(paths: ClusterPaths) -> None:
    with EmbeddedServer.open(paths.home):
        started = time.monotonic()
        for _ in range(5):
            EmbeddedServer.open(paths.home).close()
        assert (time.monotonic() - started) / 5 < 0.5
