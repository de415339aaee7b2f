"""What a soak sees of a server: differences of tables, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from bench.soak.check import Check, compare
from bench.soak.locks import LockWatch, sessions
from bench.soak.site import RUNTIME
from headrace.embedded import EmbeddedServer

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        ("(1, 1.5), (1, 1.50), (2, NULL)", []),
        ("(1, 1.5), (2, NULL)", ["t: 1 rows missing, 0 surplus, of 2"]),
        ("(1, 1.5), (1, 1.5), (2, NULL), (2, NULL)", ["t: 0 rows missing, 1 surplus, of 4"]),
        ("(1, 1.5), (1, 1.5), (2, 0)", ["t: 1 rows missing, 1 surplus, of 3"]),
    ],
)
def test_a_difference_is_found(dsn: str, served: str, expected: list[str]) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE t (k int, v numeric)")
        connection.execute(f"INSERT INTO t VALUES {served}")
        found = Check(0)
        compare(connection, "t", "VALUES (1, 1.5), (1, 1.5), (2, NULL::numeric)", found)
    assert found.differences == expected


@pytest.fixture
def runtime(server: EmbeddedServer, dsn: str) -> Iterator[str]:
    """The address of the role that Headrace has in a soak."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {RUNTIME} LOGIN SUPERUSER")
        yield server.dsn_of(connection.info.dbname, RUNTIME)
        connection.execute(f"DROP ROLE {RUNTIME}")


@pytest.mark.parametrize("name", ["headrace", "soak ddl"])
def test_a_lock_of_headrace_is_seen(dsn: str, runtime: str, name: str) -> None:
    watch = LockWatch(None)  # type: ignore[arg-type]
    with (
        psycopg.connect(dsn, autocommit=True) as control,
        psycopg.connect(runtime, application_name=name) as holder,
        psycopg.connect(dsn, application_name="soak writer 0") as writer,
    ):
        control.execute("CREATE TABLE t (k int)")
        holder.execute("LOCK TABLE t IN SHARE MODE")
        waiting = threading.Thread(target=writer.execute, args=["INSERT INTO t VALUES (1)"])
        waiting.start()
        while not any(one.blockers for one in sessions(control)):
            pass
        for now in (10.0, 10.5, 10.7):
            assert watch.waits == ()
            watch.note(sessions(control), now)
        holder.rollback()
        waiting.join()
    if name == "headrace":
        (wait,) = watch.waits
        assert (wait.at, wait.seconds, wait.session) == (10.0, pytest.approx(1.1), "soak writer 0")
        assert wait.blocker == "headrace: LOCK TABLE t IN SHARE MODE"
        assert wait.statement == "INSERT INTO t VALUES (1)"
    else:
        assert (watch.waits, watch.others) == ((), 3)
