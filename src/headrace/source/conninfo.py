"""Connection strings: parsed, pinned to settings of our own, and shown without secrets."""

from __future__ import annotations

import os
from collections.abc import Mapping

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from headrace.errors import UserError

# What a session must not inherit from a role, a database or the environment. The first block
# decides how values read as text, the second who may stop us or thin the rows we see, the third
# keeps names in PostgreSQL's own answers (format_type) the same for every reader, and keeps those
# of users from being taken for PostgreSQL's. Constraints of a table are not looked at for a plan:
# their functions would run as ours.
SETTINGS: Mapping[str, str] = {
    "datestyle": "ISO",
    "timezone": "UTC",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "array_nulls": "on",
    "standard_conforming_strings": "on",
    "extra_float_digits": "3",
    "lc_monetary": "C",
    "row_security": "off",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "lock_timeout": "5s",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "search_path": "pg_catalog, pg_temp",
    "constraint_exclusion": "off",
    "jit": "off",
}
SETTINGS_BY_VERSION: tuple[tuple[int, str, str], ...] = ((17, "transaction_timeout", "0"),)

# Whoever is gone without a word is noticed in about a minute, instead of after hours: by us, and by
# the server, which keeps locks, a slot or the lease for us until then. What users give counts.
NOTICED: Mapping[str, str] = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
NOTICED_BY_SERVER: Mapping[str, str] = {
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "60s",
}


def parse(dsn: str) -> dict[str, str]:
    """The parts of a connection string, URI or key=value; raises `invalid-dsn`.

    libpq's complaint is not passed on: it quotes the string. For the same reason an address is
    refused in which an unescaped `@` or `/` would make part of a password look like a host.
    """
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        parts = None
    if parts is None or not _is_clear(dsn):
        raise UserError(
            "invalid-dsn",
            "the connection string cannot be parsed",
            hint="Write postgresql://user@host:5432/database or host=… dbname=…; in an address, "
            "percent-encode special characters of user and password.",
        )
    return {key: str(value) for key, value in parts.items() if value is not None}


def _is_clear(dsn: str) -> bool:
    scheme, separator, rest = dsn.partition("://")
    if not separator or scheme not in ("postgresql", "postgres"):
        return True
    authority, _, path = rest.partition("?")[0].partition("/")
    return authority.count("@") <= 1 and "@" not in path


def pinned(dsn: str, version: int, settings: Mapping[str, str] | None = None) -> str:
    """The same address with our session settings, for any libpq client of a server of `version`.

    Settings of the user's own `options` that are not ours stay.
    """
    parts = {**NOTICED, **parse(dsn)}
    wanted = {**NOTICED_BY_SERVER, **SETTINGS}
    wanted |= {name: value for since, name, value in SETTINGS_BY_VERSION if version >= since}
    wanted |= settings or {}
    given = parts.get("options") or os.environ.get("PGOPTIONS", "")
    ours = " ".join(f"-c {name}={_escape(value)}" for name, value in wanted.items())
    parts |= {
        "options": f"{given} {ours}".strip(),
        "application_name": "headrace",
        "client_encoding": "UTF8",
    }
    return make_conninfo("", **parts)


def noticed(dsn: str) -> str:
    """Return the same address, by which a server that is silent is noticed as by `pinned`."""
    return make_conninfo("", **{**NOTICED, **parse(dsn)})


def place(dsn: str) -> str:
    """Where a connection string leads, for messages: never its password."""
    parts = parse(dsn)
    return " ".join(f"{key}={parts[key]}" for key in ("host", "port", "dbname") if key in parts)


def redacted(text: str, *dsns: str | None) -> str:
    """`text` without any password that the connection strings or the environment hold."""
    secrets = {os.environ.get("PGPASSWORD", "")}
    for dsn in dsns:
        if dsn is not None:
            parts = parse(dsn)
            secrets |= {parts.get("password", ""), parts.get("sslpassword", "")}
    for secret in sorted(secrets - {""}, key=len, reverse=True):
        text = text.replace(secret, "********")
    return text


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
