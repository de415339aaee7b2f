"""A commit is whole or nothing, under the newest fence, and epochs are given once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql

from headrace.catalog import Catalog, Change, PostgresCatalog, State, Transaction
from headrace.errors import HeadraceError, InternalError, Unavailable
from headrace.source.connection import Database
from tests.catalog import examples

EVERYTHING = Change(
    put=examples.RECORDS,
    epochs=(examples.CUT,),
    refreshes=(examples.REFRESH,),
    receipts=(examples.RECEIPT,),
)


def assert_empty(catalog: Catalog) -> None:
    assert catalog.state() == State()
    assert catalog.cuts(99) == ()
    assert catalog.refreshes() == ()
    assert catalog.receipts() == ()


def test_a_failing_apply_leaves_nothing(catalog: Catalog) -> None:
    def fail(transaction: Transaction) -> None:
        raise KeyError("no such column")

    with catalog.lease("test") as lease:
        with pytest.raises(KeyError, match="no such column"):
            catalog.commit(EVERYTHING, fence=lease.fence, apply=fail)
        assert_empty(catalog)
        catalog.commit(EVERYTHING, fence=lease.fence)
    assert catalog.state().stream_tables == (examples.TABLE,)


def test_an_old_fence_writes_nothing_and_applies_nothing(catalog: Catalog) -> None:
    applied: list[Transaction] = []
    with catalog.lease("first") as first:
        pass
    with catalog.lease("second") as second:
        assert second.fence > first.fence
        with pytest.raises(Unavailable) as raised:
            catalog.commit(EVERYTHING, fence=first.fence, apply=applied.append)
    assert raised.value.code == "lease-lost"
    assert applied == []
    assert_empty(catalog)


def test_history_goes_on_under_a_new_relation(catalog: Catalog) -> None:
    with catalog.lease("test") as lease:
        catalog.commit(EVERYTHING, fence=lease.fence)
        new = replace(examples.TABLE, relation="rnew")
        relation = replace(examples.TOTALS, id="rnew")
        later = replace(examples.REFRESH, table="rnew", reason="rebuilt")
        catalog.commit(
            Change(
                put=(relation, new),
                remove=(examples.TABLE, examples.TOTALS),
                refreshes=(later,),
                successors=(("rtotals", "rnew"),),
            ),
            fence=lease.fence,
        )
    assert catalog.state().stream_tables == (new,)
    assert [line.reason for line in catalog.refreshes("rnew")] == [
        "rebuilt",
        examples.REFRESH.reason,
    ]
    assert [line.table for line in catalog.receipts("rnew")] == ["rnew"]
    assert catalog.refreshes("rtotals") == ()


def test_epochs_grow_and_never_repeat(catalog: Catalog) -> None:
    def fail(transaction: Transaction) -> None:
        raise KeyError

    given = [catalog.next_epoch()]
    with catalog.lease("test") as lease, pytest.raises(KeyError):
        catalog.commit(
            Change(put=(replace(examples.DATABASE, epoch=given[0]),)),
            fence=lease.fence,
            apply=fail,
        )
    given.append(catalog.next_epoch())
    with ThreadPoolExecutor(8) as threads:
        given += threads.map(lambda _: catalog.next_epoch(), range(200))
    assert given[0] > 0
    assert given[1] > given[0]
    assert len(set(given)) == 202
    assert min(given[2:]) > given[1]


def test_the_catalog_is_not_called_within_its_own_commit(catalog: Catalog) -> None:
    def ask(transaction: Transaction) -> None:
        catalog.next_epoch()

    with catalog.lease("test") as lease, pytest.raises(InternalError, match="its own commit"):
        catalog.commit(EVERYTHING, fence=lease.fence, apply=ask)
    assert_empty(catalog)
    assert catalog.next_epoch() > 0


@pytest.mark.postgres
class TestOnPostgres:
    def test_what_apply_did_is_committed_with_the_records(
        self, postgres: PostgresCatalog, dsn: str
    ) -> None:
        def serve(transaction: Transaction) -> None:
            transaction.execute("CREATE TABLE public.totals (customer bigint)")
            with transaction.cursor().copy("COPY public.totals FROM STDIN") as copy:
                copy.write_row((7,))

        with postgres.lease("test") as lease, psycopg.connect(dsn, autocommit=True) as reader:
            postgres.commit(EVERYTHING, fence=lease.fence, apply=serve)
            assert reader.execute("SELECT customer FROM totals").fetchall() == [(7,)]

    def test_what_apply_did_is_rolled_back_with_the_records(
        self, postgres: PostgresCatalog, dsn: str
    ) -> None:
        def serve(transaction: Transaction) -> None:
            transaction.execute("CREATE TABLE public.totals (customer bigint)")
            transaction.execute("SELECT 1 / 0")

        with postgres.lease("test") as lease, pytest.raises(InternalError):
            postgres.commit(EVERYTHING, fence=lease.fence, apply=serve)
        assert_empty(postgres)
        with psycopg.connect(dsn) as reader:
            assert reader.execute("SELECT to_regclass('totals')").fetchone() == (None,)

    def test_a_reference_to_nothing_is_refused(self, postgres: PostgresCatalog) -> None:
        with postgres.lease("test") as lease, pytest.raises(InternalError):
            postgres.commit(Change(put=(examples.TABLE,)), fence=lease.fence)
        assert_empty(postgres)

    def test_a_commit_waits_for_a_takeover_and_meets_the_new_fence(
        self, postgres: PostgresCatalog, dsn: str
    ) -> None:
        with postgres.lease("test") as lease, psycopg.connect(dsn) as other:
            other.execute("UPDATE headrace.lease SET fence = fence + 1")
            with ThreadPoolExecutor(1) as threads:
                waiting = threads.submit(postgres.commit, EVERYTHING, fence=lease.fence)
                with psycopg.connect(dsn, autocommit=True) as watcher:
                    while (
                        watcher.execute(
                            "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                            " AND datname = current_database()"
                        ).fetchone()
                        is None
                    ):
                        assert not waiting.done()
                other.commit()
                with pytest.raises(Unavailable) as raised:
                    waiting.result()
        assert raised.value.code == "lease-lost"
        assert_empty(postgres)

    def test_commits_are_synchronous_whatever_the_database_says(
        self, postgres: PostgresCatalog, dsn: str
    ) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            name = sql.Identifier(connection.info.dbname)
            connection.execute(
                sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(name)
            )
        found: list[object] = []

        def look(transaction: Transaction) -> None:
            found.extend(
                transaction.execute("SELECT current_setting('synchronous_commit')").fetchall()
            )

        later = PostgresCatalog.open(Database(dsn).connect)
        with later.lease("test") as lease:
            later.commit(EVERYTHING, fence=lease.fence, apply=look)
        later.close()
        assert found == [("on",)]

    def test_closed_is_closed(self, postgres: PostgresCatalog) -> None:
        postgres.close()
        postgres.close()
        with pytest.raises(InternalError, match="after it was closed"):
            postgres.state()

    def test_a_broken_connection_is_opened_again(self, postgres: PostgresCatalog, dsn: str) -> None:
        first = postgres.next_epoch()
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(HeadraceError) as raised:
            postgres.next_epoch()
        assert raised.value.code == "connection-lost"
        assert postgres.next_epoch() > first
