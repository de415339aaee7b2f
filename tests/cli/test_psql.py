"""psql gets the passwords of a connection string, and nobody else on the machine does."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from headrace.cli.commands.psql import without_secrets
from headrace.errors import UserError

DSN = "host=db.internal dbname=shop password=first sslkey=key.pem sslpassword='second one'"


def test_no_password_is_among_the_arguments() -> None:
    with without_secrets(DSN) as (address, secrets):
        assert conninfo_to_dict(address) == {
            "host": "db.internal",
            "dbname": "shop",
            "sslkey": "key.pem",
            "service": "headrace",
        }
        assert secrets["PGPASSWORD"] == "first"
        file = Path(secrets["PGSERVICEFILE"])
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not file.exists()


def test_libpq_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with without_secrets(DSN) as (address, secrets):
        for name, value in secrets.items():
            monkeypatch.setitem(os.environ, name, value)
        connection = psycopg.pq.PGconn.connect_start(f"{address} host=127.0.0.1".encode())
        given = {one.keyword: one.val for one in connection.info}
        connection.finish()
    assert (given[b"password"], given[b"sslpassword"]) == (b"first", b"second one")


def test_without_a_password_there_is_no_file() -> None:
    with without_secrets("host=db.internal service=shop") as (address, secrets):
        assert (conninfo_to_dict(address)["service"], secrets) == ("shop", {})


def test_a_service_of_the_users_own_has_to_hold_it() -> None:
    with pytest.raises(UserError) as refused, without_secrets(f"{DSN} service=shop"):
        pass
    assert refused.value.code == "invalid-dsn"


def test_nor_is_a_service_of_the_environment_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSERVICE", "shop")
    with pytest.raises(UserError) as refused, without_secrets(DSN):
        pass
    assert refused.value.code == "invalid-dsn"


@pytest.mark.parametrize("password", ["ends with a blank ", " begins with one", "two\nlines"])
def test_libpq_would_read_another_password_from_the_file(password: str) -> None:
    address = make_conninfo("host=db.internal", sslpassword=password)
    with pytest.raises(UserError) as refused, without_secrets(address):
        pass
    assert refused.value.code == "invalid-dsn"
