"""One writer at a time: among threads, catalogs and processes; a dead one gives way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from headrace.catalog import Catalog, Change, PostgresCatalog
from headrace.errors import Transient, Unavailable
from headrace.source.connection import Database
from tests.catalog import examples

HOLDER = """
import sys, time
from headrace.catalog import PostgresCatalog
from headrace.source.connection import Database

with PostgresCatalog.open(Database(sys.argv[1]).connect).lease("the other") as lease:
    sys.stdout.write(f"{lease.fence}\\n")
    sys.stdout.flush()
    time.sleep(60)
"""


def test_every_holder_has_a_greater_number(catalog: Catalog) -> None:
    fences = []
    for _ in range(3):
        with catalog.lease("test") as lease:
            fences.append(lease.fence)
    assert fences == sorted(set(fences))


def test_the_lease_says_who_has_it(catalog: Catalog) -> None:
    with catalog.lease("anna at desk") as lease:
        assert (lease.holder, lease.pid) == ("anna at desk", os.getpid())
        assert abs(datetime.now(UTC) - lease.acquired_at) < timedelta(seconds=30)


def test_its_thread_may_take_it_again(catalog: Catalog) -> None:
    with catalog.lease("outer") as outer:
        with catalog.lease("inner") as inner:
            assert inner == outer
        catalog.commit(Change(put=(examples.DATABASE,)), fence=outer.fence)
        with ThreadPoolExecutor(1) as threads, pytest.raises(Unavailable):
            threads.submit(catalog.lease("thread").__enter__).result()


def test_it_is_free_after_an_error(catalog: Catalog) -> None:
    with pytest.raises(KeyError), catalog.lease("test"):
        raise KeyError
    with catalog.lease("test") as lease:
        catalog.commit(Change(), fence=lease.fence)


def test_the_error_for_another_thread_names_the_holder(catalog: Catalog) -> None:
    def intrude() -> None:
        with catalog.lease("intruder", wait=0.05):
            raise AssertionError("two holders")

    with (
        catalog.lease("anna at desk"),
        ThreadPoolExecutor(1) as threads,
        pytest.raises(Unavailable) as raised,
    ):
        threads.submit(intrude).result()
    assert raised.value.code == "lease-held"
    assert f"anna at desk (process {os.getpid()})" in str(raised.value.detail)


def test_threads_take_turns(catalog: Catalog) -> None:
    inside = threading.Lock()

    def write(number: int) -> int:
        with catalog.lease(f"thread {number}", wait=30) as lease:
            assert inside.acquire(blocking=False)
            catalog.commit(Change(), fence=lease.fence)
            inside.release()
            return lease.fence

    with ThreadPoolExecutor(8) as threads:
        fences = list(threads.map(write, range(24)))
    assert len(set(fences)) == 24


@pytest.mark.postgres
class TestOnPostgres:
    def test_catalogs_take_turns(self, postgres: PostgresCatalog, dsn: str) -> None:
        inside = threading.Lock()

        def write(number: int) -> None:
            catalog = PostgresCatalog.open(Database(dsn).connect)
            for _ in range(5):
                with catalog.lease(f"catalog {number}", wait=30) as lease:
                    assert inside.acquire(blocking=False)
                    catalog.commit(Change(), fence=lease.fence)
                    inside.release()
            catalog.close()

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(write, range(4)))

    def test_another_process_holds_it_until_it_is_killed(
        self, postgres: PostgresCatalog, dsn: str
    ) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, dsn], stdout=subprocess.PIPE, text=True
        ) as other:
            try:
                assert other.stdout is not None
                fence = int(other.stdout.readline())
                with pytest.raises(Unavailable) as raised, postgres.lease("test", wait=0.2):
                    pass
                assert raised.value.code == "lease-held"
                assert f"the other (process {other.pid})" in str(raised.value.detail)
            finally:
                os.kill(other.pid, signal.SIGKILL)
        with postgres.lease("test", wait=10) as lease:
            assert lease.fence == fence + 1
            postgres.commit(Change(), fence=lease.fence)

    def test_a_closed_catalog_has_given_it_up(self, postgres: PostgresCatalog, dsn: str) -> None:
        other = PostgresCatalog(Database(dsn).connect)
        with other.lease("other"):
            other.close()
            with postgres.lease("test", wait=10):
                pass

    def test_who_lost_the_connection_lost_the_lease_to_whoever_came(
        self, postgres: PostgresCatalog, dsn: str
    ) -> None:
        other = PostgresCatalog(Database(dsn).connect)
        with postgres.lease("cut off") as lost:
            with psycopg.connect(dsn, autocommit=True) as killer:
                killer.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks"
                    " WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
                )
            with other.lease("next") as next_lease:
                other.commit(Change(), fence=next_lease.fence)
            with pytest.raises(Transient, match="connection-lost"):
                postgres.commit(Change(put=(examples.DATABASE,)), fence=lost.fence)
            with pytest.raises(Unavailable) as raised:
                postgres.commit(Change(put=(examples.DATABASE,)), fence=lost.fence)
        assert raised.value.code == "lease-lost"
        assert other.state().databases == ()
        other.close()

    def test_waiting_ends_when_the_holder_does(self, postgres: PostgresCatalog, dsn: str) -> None:
        other = PostgresCatalog(Database(dsn).connect)
        entered = threading.Event()

        def hold() -> None:
            with other.lease("other"):
                entered.set()
                time.sleep(0.3)
            other.close()

        with ThreadPoolExecutor(1) as threads:
            holding = threads.submit(hold)
            entered.wait(10)
            begin = time.monotonic()
            with postgres.lease("test", wait=30):
                waited = time.monotonic() - begin
            holding.result()
        assert 0.1 < waited < 5
