"""A cheap query on suspended sources: whether the cause of a suspension may be gone.

The daemon compares the answer with an earlier one. The answer changes with the table, its columns,
triggers and rights, with its capture, and when another session's lock on the table comes or goes.
It has the number of rows written, too, since a row may have caused the suspension.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

from headrace.source.faults import translated
from headrace.source.introspect import CAPTURE_SCHEMA


@dataclass(frozen=True)
class Standing:
    """The state that decides whether a source can be taken in, as text, and rows written so far."""

    shape: str
    written: int


# Any change of a row of the system catalogs gives it another xmin.
STANDING = sql.SQL("""
SELECT o.oid::bigint, concat_ws(' ',
    c.xmin, c.relfilenode, has_table_privilege(c.oid, 'SELECT'),
    has_schema_privilege(c.relnamespace, 'USAGE'),
    (SELECT string_agg(a.xmin::text, ',' ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
    (SELECT string_agg(concat_ws(':', g.tgname, g.tgenabled, g.tgfoid), ',' ORDER BY g.tgname)
     FROM pg_trigger g WHERE g.tgrelid = c.oid),
    n.xmin, n.nspacl, b.xmin, b.relacl, f.xmin,
    EXISTS (
        SELECT FROM pg_locks l
        WHERE l.relation = c.oid AND l.granted AND l.pid <> pg_backend_pid()
            AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
            AND l.mode = 'AccessExclusiveLock'
    ),
    EXISTS (
        SELECT FROM pg_locks l
        WHERE l.relation = b.oid AND l.granted AND l.pid <> pg_backend_pid()
            AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    )
),
(
    SELECT coalesce(sum(
        pg_stat_get_tuples_inserted(p.oid) + pg_stat_get_tuples_updated(p.oid)
        + pg_stat_get_tuples_deleted(p.oid)
    ), 0)::bigint
    FROM (SELECT o.oid UNION SELECT t.relid FROM pg_partition_tree(o.oid) AS t) AS p (oid)
)
FROM unnest(%(oids)s::oid[]) AS o (oid)
LEFT JOIN pg_class c ON c.oid = o.oid
LEFT JOIN pg_namespace n ON n.nspname = {schema}
LEFT JOIN pg_class b ON b.relnamespace = n.oid AND b.relname = 'buffer_' || o.oid
LEFT JOIN pg_proc f ON f.pronamespace = n.oid AND f.proname = 'capture_' || o.oid
""").format(schema=sql.Literal(CAPTURE_SCHEMA))


def standing(connection: Connection[Any], oids: Collection[int]) -> dict[int, Standing]:
    """Return the standing of sources, by oid."""
    with translated():
        rows = connection.execute(STANDING, {"oids": sorted(oids)}).fetchall()
    return {oid: Standing(shape, written) for oid, shape, written in rows}
