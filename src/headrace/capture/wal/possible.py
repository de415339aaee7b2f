"""What stands in the way of reading a table's changes from the log, and what would have to change.

The one place that says so: before a stream table is made, before its sources are published, and in
what a DBA is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Connection

from headrace.capture.wal.availability import (
    Obstacle,
    Server,
    obstacles,
    read_server,
    unbounded,
)
from headrace.capture.wal.identity import ReplicaIdentity, full_sql, identities
from headrace.source.table import SourceTable


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
