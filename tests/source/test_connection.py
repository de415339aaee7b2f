"""Connections to a real server: pinned, lent out again, and gone when the server is."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pyarrow as pa
import pytest

from headrace.embedded import EmbeddedServer
from headrace.errors import HeadraceError, Transient, Unavailable, UserError
from headrace.source.connection import Database
from headrace.source.faults import translated

pytestmark = pytest.mark.postgres


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    with Database(dsn) as opened:
        yield opened


def test_settings_are_pinned(database: Database) -> None:
    with database.connect() as connection, database.setup_connection() as setup:
        for session in (connection, setup):
            for name, value in (("timezone", "UTC"), ("row_security", "off"), ("jit", "off")):
                assert session.execute(f"SHOW {name}").fetchone() == (value,)
            assert session.autocommit
    shown = database.arrow("SELECT current_setting('datestyle'), current_setting('search_path')")
    assert [column[0].as_py() for column in shown.columns] == ["ISO, MDY", "pg_catalog, pg_temp"]
    assert 15 <= database.version <= 18


def test_a_session_is_lent_again_unless_it_comes_back_dirty(database: Database) -> None:
    with database.session() as first:
        first.execute("SELECT 1")
    with database.session() as second, database.session() as third:
        assert second is first
        assert third is not first
        second.execute("BEGIN")
    assert second.closed
    assert not third.closed


def test_arrow(database: Database) -> None:
    table = database.arrow("SELECT n::smallint AS n FROM generate_series(1, 3) n")
    assert table.column("n").combine_chunks().equals(pa.array([1, 2, 3], pa.int16()))
    with pytest.raises(HeadraceError) as failed:
        database.arrow("SELECT 1 / 0")
    assert "22012" in (failed.value.detail or "")
    assert database.arrow("SELECT 1 AS a", by_index=True).num_rows == 1


def test_a_connection_that_breaks(database: Database, dsn: str) -> None:
    """The one who notices gets an error; the next one gets a new connection."""
    database.arrow("SELECT 1")
    with database.session() as connection:
        end_others(dsn)
        with pytest.raises(Transient) as lost, translated():
            connection.execute("SELECT 1")
    assert lost.value.code == "connection-lost"
    database.arrow("SELECT 1")
    end_others(dsn)
    with pytest.raises(Transient) as lost:
        database.arrow("SELECT 1")
    assert lost.value.code == "connection-lost"
    assert database.arrow("SELECT 1").num_rows == 1


def end_others(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_addresses_that_lead_nowhere(server: EmbeddedServer) -> None:
    with pytest.raises(UserError) as wrong:
        Database(server.dsn_of("no such database")).connect()
    assert wrong.value.code == "invalid-dsn"
    with pytest.raises(UserError) as wrong:
        Database(server.dsn_of("postgres", "no such role")).connect()
    assert wrong.value.code == "invalid-dsn"
    with pytest.raises(Unavailable) as nobody:
        Database("host=/nowhere password=hush dbname=x").connect()
    assert nobody.value.code == "server-unreachable"
    assert "hush" not in str(nobody.value)


def test_a_server_that_is_too_old(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.source.connection.VERSIONS", range(90, 92))
    with pytest.raises(UserError) as refused:
        Database(dsn).connect()
    assert refused.value.code == "unsupported-server"
