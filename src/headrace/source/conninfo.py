"""Connection strings: parsed, pinned to our session settings, and shown without secrets."""

from __future__ import annotations

import os
from collections.abc import Mapping

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from headrace.errors import UserError

# Settings that a session must not inherit from a role, a database or the environment. The first
# block fixes the text form of values, the second timeouts and row filters. The third fixes names in
# PostgreSQL's own output (format_type, pg_get_viewdef) and what queries mean, and keeps objects of
# users from shadowing built-in ones.
# Constraints are not used for planning: their functions would run with our rights.
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
    "quote_all_identifiers": "off",
    "transform_null_equals": "off",
    "gin_fuzzy_search_limit": "0",
    "constraint_exclusion": "off",
    "jit": "off",
}
SETTINGS_BY_VERSION: tuple[tuple[int, str, str], ...] = ((17, "transaction_timeout", "0"),)

# Both sides notice a silent connection loss in about a minute, instead of after hours; until then
# the server keeps locks, a slot or the lease for us. The connection string takes precedence.
KEEPALIVE: Mapping[str, str] = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
SERVER_KEEPALIVE: Mapping[str, str] = {
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "60s",
}


def parse(dsn: str) -> dict[str, str]:
    """Return the parts of a connection string, URI or key=value; raise `invalid-dsn`.

    libpq's message is not passed on: it quotes the string. For the same reason an address is
    refused in which an unescaped `@` or `/` would make part of a password look like a host.
    """
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        parts = None
    if parts is None or not _is_clear(dsn):
        raise UserError(
            "invalid-dsn",
            "could not parse the connection string",
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
    """Return the address with our session settings, for libpq clients of a server of `version`.

    Other settings in the user's own `options` are kept.
    """
    parts = {**KEEPALIVE, **parse(dsn)}
    session = {**SERVER_KEEPALIVE, **SETTINGS}
    session |= {name: value for since, name, value in SETTINGS_BY_VERSION if version >= since}
    session |= settings or {}
    users_options = parts.get("options") or os.environ.get("PGOPTIONS", "")
    session_options = " ".join(f"-c {name}={_escape(value)}" for name, value in session.items())
    parts |= {
        "options": f"{users_options} {session_options}".strip(),
        "application_name": "headrace",
        "client_encoding": "UTF8",
    }
    return make_conninfo("", **parts)


def with_keepalive(dsn: str) -> str:
    """Return the connection string with the time limits by which `pinned` detects a dead server."""
    return make_conninfo("", **{**KEEPALIVE, **parse(dsn)})


def place(dsn: str) -> str:
    """Return host, port and database of a connection string, for messages."""
    parts = parse(dsn)
    return " ".join(f"{key}={parts[key]}" for key in ("host", "port", "dbname") if key in parts)


def redacted(text: str, *dsns: str | None) -> str:
    """Return `text` without the passwords of the connection strings and the environment."""
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
