"""What the embedded server promises to those who connect."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import adbc_driver_postgresql.dbapi
import psycopg
import pytest

from headrace.embedded import EmbeddedServer
from headrace.embedded.cluster import SETTINGS
from tests.embedded.processes import answer

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize(
    ("setting", "value"), [pair for pair in SETTINGS if pair[0] != "log_destination"]
)
def test_settings_are_in_force(server: EmbeddedServer, setting: str, value: str) -> None:
    assert answer(server.dsn, f"SHOW {setting}") == value


def test_text_is_ordered_by_code_point(dsn: str) -> None:
    ordered = (
        "SELECT string_agg(x, '' ORDER BY x) FROM (VALUES ('a'), ('B'), ('é'), ('Z')) AS v (x)"
    )
    assert answer(dsn, ordered) == "BZaé"
    assert answer(dsn, "SHOW server_encoding") == "UTF8"


def test_the_same_address_serves_psycopg_and_adbc(server: EmbeddedServer) -> None:
    assert answer(server.dsn, "SELECT current_database()") == "headrace"
    with (
        adbc_driver_postgresql.dbapi.connect(server.dsn) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == ("headrace",)


def test_transactions_can_be_prepared(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE t (x int)")
        connection.execute("PREPARE TRANSACTION 'embedded'")
        connection.commit()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("COMMIT PREPARED 'embedded'")
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_changes_can_be_decoded(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_create_logical_replication_slot('embedded', 'pgoutput')")
        connection.execute("SELECT pg_drop_replication_slot('embedded')")


def test_every_test_has_a_database_of_its_own(dsn: str, server: EmbeddedServer) -> None:
    assert dsn != server.dsn
    assert (
        answer(dsn, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace")
        == 0
    )


def test_a_home_with_a_long_and_odd_path(tmp_path: Path) -> None:
    home = tmp_path / ("deep" * 20) / ('it\'s "odd", % é' * 3) / "home"
    with EmbeddedServer.open(home) as server:
        assert answer(server.dsn, "SELECT 1") == 1
        with EmbeddedServer.open(home) as again:
            assert again.dsn == server.dsn
        (folder,) = re.findall(r"host=([^&]*)", server.dsn)
        assert Path(unquote(folder)).is_dir()
    assert not Path(unquote(folder)).exists()


def test_a_short_but_odd_path(tmp_path: Path) -> None:
    home = tmp_path / "a %20,\"'"
    with EmbeddedServer.open(home) as server:
        assert answer(server.dsn, "SELECT 1") == 1
