"""AVAIL"""

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

# Before these, a table that entered a publication while someone was writing to it could stay
# unpublished for the reader of a slot, without a word.
FIRST_SOUND = {15: 150013, 16: 160009, 17: 170005}


@dataclass(frozen=True)
class Server:
    """What a server says about itself, and about the role that asks.

    `bounded`: it limits by itself how much log a slot holds back that nobody reads any more.
    """

    version: int
    standby: bool
    wal_level: str
    max_slots: int
    slots: int
    has_ours: bool
    role: str
    replication: bool
    bounded: bool = True


@dataclass(frozen=True)
class Obstacle:
    """Why the log cannot be read, and what a DBA does about it."""

    reason: str
    remedy: str


def read_server(connection: Connection[Any], slot: str) -> Server:
    with translated():
        found = connection.execute(SERVER, (slot,)).fetchone()
    assert found is not None
    return Server(*found)


def unbounded(server: Server) -> Obstacle | None:
    """What keeps us from following unasked: without us, the slot would fill the server's disk."""
    if server.bounded:
        return None
    return Obstacle(
        "max_slot_wal_keep_size is not limited, so that a slot nobody reads could fill the disk",
        "ALTER SYSTEM SET max_slot_wal_keep_size = '10GB'; SELECT pg_reload_conf();",
    )


def obstacles(server: Server) -> tuple[Obstacle, ...]:
    """All that stands in the way (pure). Reading by SQL needs no WAL sender, so none is asked for.

    The settings need a restart of the server, the right does not.
    """
    found: list[Obstacle] = []
    sound = FIRST_SOUND.get(server.version // 10000, 0)
    if server.version < sound:
        minor = f"{sound // 10000}.{sound % 10000}"
        found.append(
            Obstacle(
                f"PostgreSQL before {minor} can lose changes of a newly published table",
                f"Update the server to {minor} or later.",
            )
        )
    if server.standby:
        found.append(Obstacle("the server is a standby", "Connect to the primary."))
    if server.wal_level != "logical":
        found.append(
            Obstacle(
                f"wal_level is {server.wal_level}",
                "ALTER SYSTEM SET wal_level = logical; and restart the server.",
            )
        )
    if not server.has_ours and server.slots >= server.max_slots:
        found.append(
            Obstacle(
                f"all of max_replication_slots = {server.max_slots} are in use",
                f"ALTER SYSTEM SET max_replication_slots = {server.slots + 1}; and restart the "
                "server, or drop a slot that nobody reads.",
            )
        )
    if not server.replication:
        role = sql.Identifier(server.role).as_string()
        found.append(
            Obstacle(
                f"role {server.role} may not use replication slots",
                f"ALTER ROLE {role} REPLICATION;",
            )
        )
    return tuple(found)


def impossible(
    connection: Connection[Any],
    tables: Sequence[SourceTable],
    version: int,
    slot: str,
    *,
    may_change: bool = False,
) -> dict[int, Obstacle]:
    """The first obstacle for each table (by oid) that has one; `slot` is the name of ours."""
    server = read_server(connection, slot)
    found = identities(connection, tables, version)
    judged = {
        table.oid: obstacle(server, table, found.get(table.oid), may_change=may_change)
        for table in tables
    }
    return {oid: one for oid, one in judged.items() if one is not None}


def obstacle(
    server: Server,
    table: SourceTable | None,
    identity: ReplicaIdentity | None,
    *,
    unasked: bool = False,
    may_change: bool = False,
) -> Obstacle | None:
    """The first thing that keeps a table, with its captured columns, from being followed (pure).

    What is wrong with the server stands in the way of all. A slot that could fill the server's
    disk is made only where somebody asked for it. A replica identity that may be changed does not
    count.
    """
    standing = obstacles(server)
    if standing:
        return standing[0]
    careful = unbounded(server)
    if unasked and careful is not None:
        return careful
    if table is None or identity is None:
        return Obstacle("the table is not there", "Drop the stream tables that read it.")
    return of_table(table, identity, may_change=may_change)


def of_table(
    table: SourceTable, identity: ReplicaIdentity, *, may_change: bool = False
) -> Obstacle | None:
    """What keeps a table with this replica identity from being followed (pure)."""
    if not {column.number for column in table.stored}.issuperset(identity.key):
        return Obstacle("a column of its key cannot be stored", "Let triggers capture it.")
    if identity.kind != "none" or (may_change and identity.curable):
        return None
    cures = "; ".join(statement.as_string() for statement in full_sql(identity))
    remedy = f"{cures};" if identity.curable and cures else "Let triggers capture it."
    return Obstacle(identity.reason or "it has no replica identity", remedy)
