"""The server and the database behind a connection: identity, timeline, default collation.

Changes are never continued on a server with another identity or timeline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

from headrace.errors import Unavailable
from headrace.source.faults import translated
from headrace.types import Collation

# System identifier, and the timeline of WAL being written now; pg_control_checkpoint lags behind a
# promotion. A standby writes none and answers with an error.
IDENTITY = sql.SQL("""
    (SELECT system_identifier::text FROM pg_control_system()),
    ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer
""")
QUERY = sql.SQL("""
SELECT {}, (SELECT oid::bigint FROM pg_database WHERE datname = current_database())
""").format(IDENTITY)


@dataclass(frozen=True)
class ServerIdentity:
    """The identity of a server; `database` is the oid of the connected database."""

    system_identifier: str
    timeline: int
    database: int


def server_identity(connection: Connection[Any]) -> ServerIdentity:
    """Return the identity of a primary; raise `standby-server` for a standby."""
    require_primary(connection)
    with translated():
        row = connection.execute(QUERY).fetchone()
    assert row is not None
    return ServerIdentity(*row)


def require_primary(connection: Connection[Any]) -> None:
    """Raise `standby-server` for a standby, which cannot be captured."""
    with translated():
        row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
    if row and row[0]:
        raise Unavailable(
            "standby-server",
            "the server is a standby",
            detail="A standby's snapshot does not show which transactions run on the primary.",
            hint="Connect to the primary, for example with target_session_attrs=primary.",
        )


# Code points and bytes are in one order in UTF-8 only; see also `introspect.INSPECT`.
DEFAULT_COLLATION = r"""
SELECT CASE
    WHEN encoding <> pg_char_to_encoding('UTF8') THEN 'other'
    WHEN datlocprovider = 'b' THEN 'C.UTF-8'
    WHEN datlocprovider <> 'c' OR datcollate !~* '^(C|POSIX)(\.utf-?8)?$' THEN 'other'
    WHEN datctype ~* '^(C|POSIX)$' THEN 'C'
    ELSE 'C.UTF-8'
END
FROM pg_database WHERE datname = current_database()
"""


def home_collation(connection: Connection[Any]) -> Collation:
    """Return the default collation of the database of a connection, which casts to text have."""
    row = connection.execute(DEFAULT_COLLATION).fetchone()
    assert row is not None
    return Collation(row[0])
