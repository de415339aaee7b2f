"""Which tables of a database cannot be followed in the log, and what would have to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Connection

from headrace.capture.wal.availability import Obstacle, obstacles, read_server
from headrace.capture.wal.identity import Identity, full_sql, identities
from headrace.source.table import SourceTable


def impossible(
    connection: Connection[Any],
    tables: Sequence[SourceTable],
    version: int,
    slot: str,
    *,
    auto_replica_identity: bool = False,
) -> dict[int, Obstacle]:
    """The first obstacle for each table (by oid) that has one.

    What is wrong with the server stands in the way of all. A replica identity that may be changed
    does not count. `slot` is the name of ours, made already or not.
    """
    server = obstacles(read_server(connection, slot))
    if server:
        return {table.oid: server[0] for table in tables}
    found = identities(connection, tables, version)
    judged = {
        table.oid: of_table(table, found[table.oid], may_change=auto_replica_identity)
        for table in tables
        if table.oid in found
    }
    return {oid: obstacle for oid, obstacle in judged.items() if obstacle is not None}


def of_table(
    table: SourceTable, identity: Identity, *, may_change: bool = False
) -> Obstacle | None:
    """What keeps a table with this replica identity from being followed (pure)."""
    if not {column.number for column in table.stored}.issuperset(identity.key):
        return Obstacle("a column of its key cannot be stored", "Let triggers capture it.")
    if identity.kind != "none" or (may_change and identity.curable):
        return None
    cures = "; ".join(statement.as_string() for statement in full_sql(identity))
    remedy = f"{cures};" if identity.curable and cures else "Let triggers capture it."
    return Obstacle(identity.reason or "it has no replica identity", remedy)
