"""Preparation of a copy, which then stands for the changes in the source's buffer and notes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection, errors, sql

from headrace.capture.busy import SourcesUnusable, busy_writers
from headrace.capture.health import capture_present
from headrace.capture.layout import buffer_name
from headrace.capture.recopy_reasons import Captured, relabelled
from headrace.capture.space import large_buffers
from headrace.source.faults import translated
from headrace.source.introspect import CAPTURE_SCHEMA, inspect
from headrace.source.table import SourceTable

# A wait for a lock on a buffer blocks writers of the source: so the waits are short and few.
LOCK_MILLISECONDS = 300
ATTEMPTS = 4
PAUSE_SECONDS = 0.1

# The note moves from `recopy_reasons` to `sources`, where acknowledging the copy clears it. DELETE
# waits for transactions that relied on a note instead of leaving one of their own: afterwards all
# of these are in the next snapshot, and later transactions leave a new note.
MOVE = sql.SQL("""
WITH noted AS (
    DELETE FROM {schema}.recopy_reasons WHERE source = ANY (%(oids)s::oid[])
    RETURNING source, reason
)
UPDATE {schema}.sources s
SET copy_due = coalesce(
        (SELECT min(n.reason) FROM noted n WHERE n.source = s.source), s.copy_due,
        'a copy was begun'
    ),
    copy_due_xid = pg_current_xact_id()
WHERE s.source = ANY (%(oids)s::oid[])
""").format(schema=sql.Identifier(CAPTURE_SCHEMA))

REVIVE = sql.SQL("""
INSERT INTO {schema}.alive (source) SELECT unnest(%(oids)s::oid[]) ON CONFLICT DO NOTHING
""").format(schema=sql.Identifier(CAPTURE_SCHEMA))


def settle(connection: Connection[Any], sources: Sequence[Captured]) -> Mapping[int, SourceTable]:
    """Prepare the sources for a copy in the next snapshot; return their tables as they are now.

    From now until the copy is acknowledged the source database itself records that a copy is due.
    A large buffer, or one with enum labels that were renamed since, is emptied: the next snapshot
    has its changes. Raises SourcesUnusable for sources that writers have locked.
    """
    with translated():
        tables = inspect(connection, [source.oid for source in sources])
        if not tables or not capture_present(connection):
            return tables
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE_SECONDS)
            if _settle_once(connection, sources, tables):
                return tables
        alone = {} if len(tables) == 1 else {oid: {oid: table} for oid, table in tables.items()}
        ready = {oid for oid, table in alone.items() if _settle_once(connection, sources, table)}
    busy = {oid: busy_writers(table) for oid, table in tables.items() if oid not in ready}
    if busy:
        raise SourcesUnusable(busy)
    return tables


def _settle_once(
    connection: Connection[Any], sources: Sequence[Captured], tables: Mapping[int, SourceTable]
) -> bool:
    """Settle tables in one transaction; return False, with nothing done, if one is locked."""
    try:
        _settle(connection, sources, tables)
    except (errors.LockNotAvailable, errors.DeadlockDetected):
        return False
    return True


def _settle(
    connection: Connection[Any], sources: Sequence[Captured], tables: Mapping[int, SourceTable]
) -> None:
    oids = sorted(tables)
    with connection.transaction():
        wait = sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_MILLISECONDS)
        connection.execute(wait)
        emptied = large_buffers(connection, oids) | {
            source.oid
            for source in sources
            if source.oid in tables and relabelled(source.storage, tables[source.oid].storage)
        }
        for oid in sorted(emptied):
            connection.execute(sql.SQL("TRUNCATE {}").format(buffer_name(oid)))
        connection.execute(MOVE, {"oids": oids})
        connection.execute(REVIVE, {"oids": oids})
