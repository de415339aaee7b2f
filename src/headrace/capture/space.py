"""The disk space of buffers: rows are deleted one by one, but files shrink only as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from psycopg import Connection, errors, sql

from headrace.capture.layout import buffer_name
from headrace.source.faults import translated
from headrace.source.introspect import CAPTURE_SCHEMA

# From half of the limit on, shrinking a buffer is worth a short lock.
LARGE = sql.SQL("""
SELECT s.source FROM {schema}.sources s
WHERE s.source = ANY (%(oids)s::oid[])
    AND pg_table_size(to_regclass({name} || '.buffer_' || s.source)) > s.max_buffer_bytes / 2
""").format(schema=sql.Identifier(CAPTURE_SCHEMA), name=sql.Literal(CAPTURE_SCHEMA))

SIZES = sql.SQL("""
SELECT s.oid, pg_table_size(b.oid) FROM unnest(%s::oid[]) AS s (oid)
JOIN pg_namespace n ON n.nspname = {schema}
JOIN pg_class b ON b.relnamespace = n.oid AND b.relname = 'buffer_' || s.oid
""").format(schema=sql.Literal(CAPTURE_SCHEMA))


def buffer_sizes(connection: Connection[Any], oids: Iterable[int]) -> dict[int, int]:
    """Return the bytes that the buffers of sources take up, by oid, for sources that have one."""
    with translated():
        rows = connection.execute(SIZES, [list(oids)]).fetchall()
    # A buffer that was dropped just now is still in pg_class as this query sees it, without a size.
    return {oid: size for oid, size in rows if size is not None}


def large_buffers(connection: Connection[Any], oids: Iterable[int]) -> frozenset[int]:
    """Return the sources whose buffers, with or without rows, take up over half of their limit."""
    return frozenset(oid for (oid,) in connection.execute(LARGE, {"oids": sorted(oids)}))


def shrink(connection: Connection[Any], oids: Iterable[int]) -> None:
    """Truncate large buffers that are empty and not locked by others, to release their disk space.

    The lock blocks writers for a moment, so that an empty buffer stays empty until the file is
    gone.
    """
    with translated():
        for oid in sorted(large_buffers(connection, oids)):
            buffer = buffer_name(oid)
            with suppress(errors.LockNotAvailable), connection.transaction():
                connection.execute(
                    sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE NOWAIT").format(buffer)
                )
                query = sql.SQL("SELECT EXISTS (SELECT FROM {})").format(buffer)
                if connection.execute(query).fetchone() == (False,):
                    connection.execute(sql.SQL("TRUNCATE {}").format(buffer))
