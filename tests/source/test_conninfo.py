"""Connection strings: pinned settings, and no secret in any message."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from headrace.errors import UserError
from headrace.source.connection import Database
from headrace.source.conninfo import (
    KEEPALIVE,
    SERVER_KEEPALIVE,
    parse,
    pinned,
    place,
    redacted,
    with_keepalive,
)

SECRET = "hunter2"


@pytest.mark.parametrize(
    "dsn",
    [
        "bogus==1",
        f"postgresql://user:{SECRET}/x@host:5432/db",
        f"postgresql://user:x@{SECRET}@host:5432/db",
        f"postgresql://user:{SECRET}@host:port/db?nonsense={SECRET}",
        f"host=x passwort={SECRET}",
    ],
)
def test_a_string_that_cannot_be_parsed(dsn: str) -> None:
    with pytest.raises(UserError) as refused:
        Database(dsn)
    assert refused.value.code == "invalid-dsn"
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_settings_of_our_own_win() -> None:
    dsn = "host=x dbname=y options='-c timezone=Asia/Tokyo -c work_mem=64MB'"
    options = str(conninfo_to_dict(pinned(dsn, 18))["options"])
    assert options.index("timezone=Asia/Tokyo") < options.index("timezone=UTC")
    assert "work_mem=64MB" in options
    assert "transaction_timeout" in options
    assert "transaction_timeout" not in pinned(dsn, 16)


def test_pinning_keeps_the_address() -> None:
    dsn = f"postgresql://u:{SECRET}@h1:1,h2:2/d?target_session_attrs=primary&connect_timeout=3"
    parts = parse(pinned(dsn, 18))
    assert (parts["host"], parts["port"], parts["dbname"]) == ("h1,h2", "1,2", "d")
    assert (parts["user"], parts["password"]) == ("u", SECRET)
    assert (parts["target_session_attrs"], parts["connect_timeout"]) == ("primary", "3")


def test_who_is_gone_without_a_word_is_noticed_at_both_ends() -> None:
    parts = parse(pinned("host=h keepalives_idle=5", 15))
    assert parts["keepalives_idle"] == "5"
    assert {name: parts[name] for name in KEEPALIVE if name != "keepalives_idle"} == {
        name: value for name, value in KEEPALIVE.items() if name != "keepalives_idle"
    }
    for name, value in SERVER_KEEPALIVE.items():
        assert f"-c {name}={value}" in parts["options"]


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    dsn = f"postgresql://u:{SECRET}@h/d"
    monkeypatch.setenv("PGPASSWORD", "from the environment")
    assert SECRET not in place(dsn)
    assert SECRET not in repr(Database(dsn))
    shown = redacted(f"{SECRET} and from the environment", dsn, None)
    assert shown == "******** and ********"


def test_a_silent_server_is_noticed_by_the_first_connection_too() -> None:
    """The one that asks for the version is not pinned yet."""
    assert parse(with_keepalive("host=h")) == {"host": "h", **KEEPALIVE}
    assert parse(with_keepalive("host=h connect_timeout=3"))["connect_timeout"] == "3"


def test_every_connection_notices_a_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(Exception):
        pass

    def refuse(address: str, **_: object) -> None:
        assert KEEPALIVE.items() <= parse(address).items()
        raise Refused

    monkeypatch.setattr("psycopg.connect", refuse)
    for ask in (lambda one: one.version, lambda one: one.search_path):
        with pytest.raises(Refused):
            ask(Database("host=h"))
