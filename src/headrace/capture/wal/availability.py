"""Whether WAL mode is possible for a server, a role and a table, and what to change if it is not.

The conditions are checked before a stream table is created and before its sources are added to the
publication, and reported to DBAs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

from headrace.capture.wal.identity import ReplicaIdentity, full_sql, identities
from headrace.source.faults import translated
from headrace.source.table import SourceTable

SERVER = """
SELECT current_setting('server_version_num')::integer, pg_is_in_recovery(),
    current_setting('wal_level'), current_setting('max_replication_slots')::integer,
    (SELECT count(*) FROM pg_replication_slots),
    EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %s),
    current_user, (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user),
    current_setting('max_slot_wal_keep_size') <> '-1'
        OR coalesce(current_setting('idle_replication_slot_timeout', true), '0') <> '0'
"""

# Before these, a table added to a publication during a concurrent write could stay unpublished for
# the reader of a slot, without an error.
FIRST_SOUND = {15: 150013, 16: 160009, 17: 170005}


@dataclass(frozen=True)
class Server:
    """Settings and state of a server, and the rights of the current role.

    `bounded`: the server limits how much WAL an unread slot retains.
    """

    version: int
    standby: bool
    wal_level: str
    max_slots: int
    slots: int
    has_our_slot: bool
    role: str
    replication: bool
    bounded: bool = True


@dataclass(frozen=True)
class Obstacle:
    """Why the WAL cannot be read, and what a DBA does about it."""

    reason: str
    remedy: str


def read_server(connection: Connection[Any], slot: str) -> Server:
    with translated():
        row = connection.execute(SERVER, (slot,)).fetchone()
    assert row is not None
    return Server(*row)


def unbounded(server: Server) -> Obstacle | None:
    """Return the obstacle to WAL mode by default: an unread slot could fill the server's disk."""
    if server.bounded:
        return None
    return Obstacle(
        "max_slot_wal_keep_size is unlimited: an unread slot could fill the disk",
        "ALTER SYSTEM SET max_slot_wal_keep_size = '10GB'; SELECT pg_reload_conf();",
    )


def obstacles(server: Server) -> tuple[Obstacle, ...]:
    """Return all obstacles on the server (pure). Reading by SQL needs no WAL sender.

    Changed settings need a restart of the server, a granted right does not.
    """
    problems: list[Obstacle] = []
    sound = FIRST_SOUND.get(server.version // 10000, 0)
    if server.version < sound:
        minor = f"{sound // 10000}.{sound % 10000}"
        problems.append(
            Obstacle(
                f"PostgreSQL before {minor} can lose changes of a newly published table",
                f"Update the server to {minor} or later.",
            )
        )
    if server.standby:
        problems.append(Obstacle("the server is a standby", "Connect to the primary."))
    if server.wal_level != "logical":
        problems.append(
            Obstacle(
                f"wal_level is {server.wal_level}",
                "ALTER SYSTEM SET wal_level = logical; and restart the server.",
            )
        )
    if not server.has_our_slot and server.slots >= server.max_slots:
        problems.append(
            Obstacle(
                f"all of max_replication_slots = {server.max_slots} are in use",
                f"ALTER SYSTEM SET max_replication_slots = {server.slots + 1}; and restart the "
                "server, or drop an unused slot.",
            )
        )
    if not server.replication:
        role = sql.Identifier(server.role).as_string()
        problems.append(
            Obstacle(
                f"role {server.role} may not use replication slots",
                f"ALTER ROLE {role} REPLICATION;",
            )
        )
    return tuple(problems)


def impossible(
    connection: Connection[Any],
    tables: Sequence[SourceTable],
    version: int,
    slot: str,
    *,
    may_change: bool = False,
) -> dict[int, Obstacle]:
    """Return the first obstacle of each table (by oid) that has one; `slot` names our slot."""
    server = read_server(connection, slot)
    by_oid = identities(connection, tables, version)
    checked = {
        table.oid: obstacle(server, table, by_oid.get(table.oid), may_change=may_change)
        for table in tables
    }
    return {oid: problem for oid, problem in checked.items() if problem is not None}


def obstacle(
    server: Server,
    table: SourceTable | None,
    identity: ReplicaIdentity | None,
    *,
    unasked: bool = False,
    may_change: bool = False,
) -> Obstacle | None:
    """Return the first obstacle to reading a table's captured columns from the WAL (pure).

    Obstacles on the server come first. `unasked`: WAL mode was not requested explicitly; then no
    slot is made that could fill the server's disk. `may_change`: a replica identity that can be
    changed is no obstacle.
    """
    server_obstacles = obstacles(server)
    if server_obstacles:
        return server_obstacles[0]
    disk_risk = unbounded(server)
    if unasked and disk_risk is not None:
        return disk_risk
    if table is None or identity is None:
        return Obstacle("the table does not exist", "Drop the stream tables that read it.")
    return of_table(table, identity, may_change=may_change)


def of_table(
    table: SourceTable, identity: ReplicaIdentity, *, may_change: bool = False
) -> Obstacle | None:
    """Return the obstacle in a table's columns or replica identity, if any (pure)."""
    if not {column.number for column in table.stored}.issuperset(identity.key):
        return Obstacle("a column of its key cannot be stored", "Capture it by triggers.")
    if identity.kind != "none" or (may_change and identity.curable):
        return None
    cures = "; ".join(statement.as_string() for statement in full_sql(identity))
    remedy = f"{cures};" if identity.curable and cures else "Capture it by triggers."
    return Obstacle(identity.reason or "it has no replica identity", remedy)
