"""The catalog's tables are made once, by whoever comes first, and never by an older version."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import resources
from threading import Barrier

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from headrace.catalog import PostgresCatalog, State, migrate
from headrace.catalog.codec import RECEIPTS, REFRESHES, STATE, to_json
from headrace.catalog.migrate import MIGRATIONS
from headrace.errors import Unavailable, UserError
from headrace.source.connection import Database
from tests.catalog import examples

ROLE = "headrace test's role"


@pytest.fixture
def plain_dsn(dsn: str) -> Iterator[str]:
    """The test's database as a role that may log in and nothing else."""
    role = sql.Identifier(ROLE)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        yield make_conninfo(dsn, user=ROLE)
        connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))
        connection.execute(sql.SQL("DROP ROLE {}").format(role))


def test_the_list_is_the_folder_in_order() -> None:
    folder = resources.files("headrace.catalog") / "migrations"
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    assert [f"{name}.sql" for name in MIGRATIONS] == files
    assert [int(name[:4]) for name in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


@pytest.mark.postgres
class TestOnPostgres:
    def test_opening_again_changes_nothing(self, dsn: str) -> None:
        def applied() -> list[tuple[object, ...]]:
            with psycopg.connect(dsn) as connection:
                return connection.execute(
                    "SELECT number, name, xmin::text FROM headrace.migrations ORDER BY number"
                ).fetchall()

        PostgresCatalog.open(Database(dsn).connect).close()
        first = applied()
        assert [row[:2] for row in first] == list(enumerate(MIGRATIONS, start=1))
        PostgresCatalog.open(Database(dsn).connect).close()
        assert applied() == first

    def test_many_may_open_it_at_once(self, dsn: str) -> None:
        start = Barrier(8)

        def open_catalog(_: int) -> State:
            start.wait(10)
            catalog = PostgresCatalog.open(Database(dsn).connect)
            state = catalog.state()
            catalog.close()
            return state

        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(open_catalog, range(8))) == [State()] * 8

    def test_a_newer_catalog_is_refused_and_left_alone(
        self, postgres: PostgresCatalog, dsn: str
    ) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute("INSERT INTO headrace.migrations VALUES (9001, '9001_future')")
        with pytest.raises(Unavailable) as raised:
            PostgresCatalog.open(Database(dsn).connect)
        assert raised.value.code == "migration-newer"

    def test_an_older_catalog_keeps_what_it_has(
        self, dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Records are the same after an upgrade, with defaults in what is new."""
        lines = ((codec, record) for codec in STATE for record in examples.RECORDS)
        rows = [(codec, record) for codec, record in lines if isinstance(record, codec.record)]
        rows += [(REFRESHES, examples.REFRESH), (RECEIPTS, examples.RECEIPT)]
        for number in range(17, len(MIGRATIONS)):
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute("DROP SCHEMA IF EXISTS headrace CASCADE")
                with monkeypatch.context() as older:
                    older.setattr(migrate, "MIGRATIONS", MIGRATIONS[:number])
                    PostgresCatalog.open(Database(dsn).connect).close()
                for codec, record in rows:
                    table = sql.Identifier("headrace", codec.table)
                    found = connection.execute(
                        sql.SQL("SELECT * FROM {} LIMIT 0").format(table)
                    ).description
                    fields = {column.name for column in found or ()}
                    encoded = {k: v for k, v in codec.encode(record).items() if k in fields}
                    encoded |= {"id": 1} if codec.key is None else {}
                    columns = sql.SQL(", ").join(map(sql.Identifier, encoded))
                    insert = "INSERT INTO {0} ({1}) OVERRIDING SYSTEM VALUE"
                    insert += " SELECT {1} FROM json_populate_record(NULL::{0}, %s::json)"
                    connection.execute(sql.SQL(insert).format(table, columns), (to_json(encoded),))
            catalog = PostgresCatalog.open(Database(dsn).connect)
            state = catalog.state()
            is_old = {name: int(name[:4]) > number for name in MIGRATIONS}
            database, totals = examples.DATABASE, examples.TOTALS
            if is_old["0022_quotas"]:
                database = replace(database, quota=None, priority=0)
            if is_old["0018_strata"]:
                totals = replace(totals, shown_epoch=None)
            assert state.databases == (database,)
            assert set(state.relations) == {examples.ORDERS, totals}
            assert (state.sources, state.stream_tables) == ((examples.SOURCE,), (examples.TABLE,))
            assert catalog.refreshes() == (replace(examples.REFRESH, id=1),)
            covered = None if is_old["0020_samples"] else examples.RECEIPT.covered
            definition = None if is_old["0024_receipt_definitions"] else "0a1b"
            receipt = replace(examples.RECEIPT, id=1, covered=covered, definition=definition)
            assert catalog.receipts() == (receipt,)
            assert (catalog.tiers(), catalog.strata_ticks()) == ((), ())
            catalog.close()
            with psycopg.connect(dsn) as connection:
                connection.execute("CREATE ROLE anybody")
                connection.execute("SET ROLE anybody")
                (row,) = connection.execute("SELECT name, stratum FROM headrace.status").fetchall()
                assert row == ('shop."Totals"', 1)
                connection.rollback()

    def test_a_failing_migration_leaves_nothing(self, dsn: str) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute("CREATE SCHEMA headrace")
            connection.execute("CREATE TABLE headrace.lease (mine integer)")
        with pytest.raises(Exception, match="lease"):
            PostgresCatalog.open(Database(dsn).connect)
        with psycopg.connect(dsn) as connection:
            tables = connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'headrace'::regnamespace"
            ).fetchall()
            assert tables == [("lease",)]
            connection.execute("DROP SCHEMA headrace CASCADE")
        PostgresCatalog.open(Database(dsn).connect).close()

    def test_without_the_right_the_hint_has_what_a_dba_runs(self, dsn: str, plain_dsn: str) -> None:
        with pytest.raises(UserError) as raised:
            PostgresCatalog.open(Database(plain_dsn).connect)
        assert raised.value.code == "permission-denied"
        statement = str(raised.value.hint).removeprefix("Let a DBA run: ")
        with psycopg.connect(dsn) as connection:
            connection.execute(statement.encode())
        catalog = PostgresCatalog.open(Database(plain_dsn).connect)
        assert catalog.state() == State()
        with catalog.lease("test") as lease:
            assert lease.fence == 1
        catalog.close()
