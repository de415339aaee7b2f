"""What any role of the database can see of us, and what it can keep from us."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headrace
from headrace.catalog import Change, PostgresCatalog, advisory
from headrace.catalog.migrate import MIGRATIONS
from headrace.catalog.records import Status
from headrace.embedded import EmbeddedServer
from headrace.errors import Unavailable
from headrace.source.connection import Database
from tests.alerts import heard_so_far, listen
from tests.catalog import examples
from tests.databases import extra_database
from tests.security.conftest import Attacker

pytestmark = pytest.mark.postgres

HELD = (
    "SELECT classid::bigint, objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND pid <> pg_backend_pid() AND database ="
    " (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@pytest.mark.parametrize("lock", ["pg_advisory_lock", "pg_advisory_lock_shared"])
def test_a_stranger_cannot_keep_the_lease(attacker: Attacker, dsn: str, lock: str) -> None:
    """It takes the lock whose number it has seen, again and again; writers go on."""
    catalog = PostgresCatalog.open(Database(dsn).connect)
    other = PostgresCatalog.open(Database(dsn).connect)
    try:
        numbers = set()
        for _ in range(3):
            with catalog.lease("first") as lease:
                ((space, number),) = attacker.execute(HELD)
                assert space == advisory.SPACE
                numbers.add(number)
                with pytest.raises(Unavailable) as held, other.lease("second"):
                    pass
                assert held.value.code == "lease-held"
                catalog.commit(Change(), fence=lease.fence)
            attacker.execute(f"SELECT {lock}({space}, {number})")
        assert len(numbers) == 3
        with other.lease("second") as lease:
            other.commit(Change(), fence=lease.fence)
            with pytest.raises(Unavailable), catalog.lease("first"):
                pass
    finally:
        catalog.close()
        other.close()


def test_a_prepared_transaction_cannot_keep_the_lease(attacker: Attacker, dsn: str) -> None:
    catalog = PostgresCatalog.open(Database(dsn).connect)
    with catalog.lease("first"):
        pass
    attacker.execute(
        f"BEGIN; SELECT pg_advisory_xact_lock({advisory.SPACE}, 1); PREPARE TRANSACTION 'stranger'"
    )
    try:
        with catalog.lease("first") as lease:
            catalog.commit(Change(), fence=lease.fence)
    finally:
        attacker.execute("ROLLBACK PREPARED 'stranger'")
        catalog.close()


def test_a_writer_that_becomes_the_owner_is_no_stranger(
    server: EmbeddedServer, attacker: Attacker, admin: psycopg.Connection[Any]
) -> None:
    """Its session belongs to the role that logged in, which has no rights of its own."""
    name = admin.info.dbname
    admin.execute(
        "CREATE ROLE keeper; CREATE ROLE person LOGIN NOINHERIT IN ROLE keeper;"
        f'GRANT CREATE ON DATABASE "{name}" TO keeper'
    )
    address = server.dsn_of(name, "person") + "&options=-c%20role%3Dkeeper"
    try:
        with (
            closing(PostgresCatalog.open(Database(address).connect)) as first,
            closing(PostgresCatalog.open(Database(address).connect)) as second,
            first.lease("first"),
        ):
            with pytest.raises(Unavailable) as held, second.lease("second"):
                pass
            assert held.value.code == "lease-held"
            row = admin.execute("SELECT lock_number FROM headrace.lease").fetchone()
            assert row == (advisory.WRITER[1],)
    finally:
        admin.execute("DROP OWNED BY keeper CASCADE; DROP ROLE person; DROP ROLE keeper")


def test_a_holder_that_serves_is_found_under_another_number(attacker: Attacker, dsn: str) -> None:
    attacker.execute(f"SELECT pg_advisory_lock({advisory.WRITER[0]}, {advisory.WRITER[1]})")
    catalog = PostgresCatalog.open(Database(dsn).connect)
    other = PostgresCatalog.open(Database(dsn).connect)
    try:
        with catalog.lease("daemon", serves=True) as lease:
            assert other.serving() == lease
        assert other.serving() is None
    finally:
        catalog.close()
        other.close()


def test_a_stranger_cannot_keep_migrations(
    attacker: Attacker, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("headrace.catalog.migrate.MIGRATIONS", MIGRATIONS[:-1])
        PostgresCatalog.open(Database(dsn).connect).close()
    space, number = advisory.MIGRATION
    attacker.execute(f"SELECT pg_advisory_lock({space}, {number})")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        attacker.execute("BEGIN; LOCK TABLE headrace.migrations IN ACCESS SHARE MODE")
    attacker.execute("ROLLBACK")
    PostgresCatalog.open(Database(dsn).connect).close()
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT max(number) FROM headrace.migrations").fetchone()
    assert row == (len(MIGRATIONS),)


def test_reasons_are_for_those_who_may_read_the_catalog(attacker: Attacker, dsn: str) -> None:
    """They may quote rows of a source: everybody sees that there is one, and no more."""
    reason = 'column "born" holds a value that cannot be stored: The value is infinity'
    catalog = PostgresCatalog.open(Database(dsn).connect)
    stopped = replace(examples.TABLE, status=Status.SUSPENDED, reason=reason)
    with catalog.lease("test") as lease:
        put = (*examples.RECORDS[:-1], stopped)
        catalog.commit(Change(put=put), fence=lease.fence)
    catalog.close()
    query = "SELECT status, reason FROM headrace.status"
    assert attacker.execute(query) == [("SUSPENDED", "<insufficient privilege>")]
    with psycopg.connect(dsn, autocommit=True) as admin:
        assert admin.execute(query).fetchall() == [("SUSPENDED", reason)]
        admin.execute("UPDATE headrace.stream_tables SET reason = NULL")
    assert attacker.execute(query) == [("SUSPENDED", None)]


def test_alerts_quote_no_rows(attacker: Attacker, dsn: str) -> None:
    """Any role may listen."""
    listen(attacker.connection)
    why = "the value is infinity"
    stopped = replace(examples.TABLE, status=Status.SUSPENDED, reason=why)
    source = replace(examples.SOURCE, status=Status.SUSPENDED, reason=why)
    failing = replace(examples.DATABASE, failing_since=examples.NOON, failure=why)
    put = (failing, examples.ORDERS, examples.TOTALS, source, stopped)
    with (
        closing(PostgresCatalog.open(Database(dsn).connect)) as catalog,
        catalog.lease("test") as lease,
    ):
        catalog.commit(Change(put=put), fence=lease.fence)
    heard = heard_so_far(attacker.connection)
    assert [one["about"] for one in heard] == ["database", "source", "table"]
    assert why not in str(heard)


def test_superusers_are_known(server: EmbeddedServer, attacker: Attacker, dsn: str) -> None:
    with Database(attacker.dsn) as plain, Database(attacker.dsn, setup_dsn=dsn) as mighty:
        assert plain.superusers == ()
        assert mighty.superusers == ("postgres",)


def test_superusers_of_all_databases_are_known(
    server: EmbeddedServer, attacker: Attacker, dsn: str, tmp_path: Path
) -> None:
    """An attached database that does not answer is passed over."""
    with psycopg.connect(dsn, autocommit=True) as admin, extra_database(server) as other:
        admin.execute(f'GRANT CREATE ON DATABASE "{admin.info.dbname}" TO attacker')
        with headrace.connect(dsn=attacker.dsn, home=tmp_path) as project:
            assert project.superuser_roles() == ()
            project.attach("other", other)
            assert project.superuser_roles() == ("postgres",)
        admin.execute(
            "UPDATE headrace.databases SET address = 'host=127.0.0.1 port=1' WHERE id <> 1"
        )
        with headrace.connect(dsn=attacker.dsn, home=tmp_path) as project:
            assert project.superuser_roles() == ()
