"""Pruning of the refresh history, receipts and cuts, as statements of the catalog.

Each table is read through the index on its lines, so the cost of pruning depends on the lines that
go, not on those that stay.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg import sql

# The choice between incremental and full is made from this many lines of each mode.
EFFORTS_KEPT = 64
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
_NOON = datetime(2000, 1, 1, 12, tzinfo=UTC)

# Lines that stay: those that costs are estimated from; the first line of the relation, which shows
# from which epoch on the table existed, with rows or without; and for every reader that has not
# taken in all of the table, the first line that it lacks, which shows how long the reader is late.
_REFRESHES = """
DELETE FROM headrace.refreshes AS line
USING (
    SELECT bound.relation, bound.beyond, bound.young, ARRAY(
        SELECT lacked.id
        FROM headrace.stream_tables AS own
        JOIN headrace.stream_tables AS reader
            ON own.relation = ANY (reader.inputs) AND reader.epoch > 0
            AND (reader.frontier ->> own.relation)::bigint < own.epoch
        CROSS JOIN (VALUES (0), (1)) AS least (rows)
        CROSS JOIN LATERAL (
            SELECT id FROM headrace.refreshes
            WHERE "table" = own.relation AND versions ? own.relation
                AND epoch > (reader.frontier ->> own.relation)::bigint
                AND rows_inserted + rows_deleted >= least.rows
            ORDER BY id LIMIT 1
        ) AS lacked
        WHERE own.relation = bound.relation
        UNION ALL
        (
            SELECT id FROM headrace.refreshes
            WHERE "table" = bound.relation AND versions ? bound.relation
            ORDER BY id LIMIT 1
        )
        UNION ALL
        SELECT kept.id
        FROM (VALUES ('FULL'), ('DIFFERENTIAL')) AS way (mode)
        CROSS JOIN LATERAL (
            SELECT id FROM headrace.refreshes
            WHERE "table" = bound.relation AND mode = way.mode
                AND error IS NULL AND effort IS NOT NULL
            ORDER BY id DESC LIMIT %(efforts)s
        ) AS kept
    ) AS kept
    FROM (
        SELECT named.relation,
            (
                SELECT id FROM headrace.refreshes WHERE "table" = named.relation
                ORDER BY id DESC LIMIT 1 OFFSET %(keep)s
            ) AS beyond,
            -- The first line that is not too old; where all are, the latest one stays.
            coalesce(
                (
                    SELECT id FROM headrace.refreshes
                    WHERE "table" = named.relation AND finished_at >= %(before)s
                    ORDER BY id LIMIT 1
                ),
                (SELECT max(id) FROM headrace.refreshes WHERE "table" = named.relation)
            ) AS young,
            (SELECT min(id) FROM headrace.refreshes WHERE "table" = named.relation) AS oldest
        FROM unnest(%(tables)s::text[]) AS named (relation)
    ) AS bound
    WHERE bound.beyond IS NOT NULL OR bound.oldest < bound.young
) AS pruned
WHERE line."table" = pruned.relation
    AND (line.id <= pruned.beyond OR line.id < pruned.young)
    AND line.id <> ALL (pruned.kept)
"""

_RECEIPTS = """
DELETE FROM headrace.receipts AS line
USING (
    SELECT named.relation,
        (
            SELECT id FROM headrace.receipts WHERE "table" = named.relation
            ORDER BY id DESC LIMIT 1 OFFSET %(keep)s
        ) AS beyond,
        (SELECT max(id) FROM headrace.receipts WHERE "table" = named.relation) AS latest
    FROM unnest(%(tables)s::text[]) AS named (relation)
) AS pruned
WHERE line."table" = pruned.relation AND line.id <> pruned.latest
    AND (line.id <= pruned.beyond OR line.verified_at < %(before)s)
"""

# Relations that have lines, found by one index probe for each of them.
_GONE = sql.SQL("""
WITH RECURSIVE named (relation) AS (
    SELECT min("table") FROM {lines}
    UNION ALL
    SELECT (SELECT min("table") FROM {lines} WHERE "table" > named.relation)
    FROM named WHERE named.relation IS NOT NULL
)
DELETE FROM {lines}
WHERE {time} < %(before)s AND "table" = ANY (
    SELECT relation FROM named
    EXCEPT SELECT relation FROM headrace.stream_tables
)
""")
_GONE_REFRESHES, _GONE_RECEIPTS = (
    _GONE.format(lines=sql.Identifier("headrace", table), time=sql.Identifier(time))
    for table, time in (("refreshes", "finished_at"), ("receipts", "verified_at"))
)

# Cuts show since when a table lacks changes; for old cuts the first of every minute suffices.
_CUTS = """
DELETE FROM headrace.epochs AS cut
USING (
    SELECT id, (
        SELECT epoch FROM headrace.epochs WHERE database = id
        ORDER BY epoch DESC LIMIT 1 OFFSET %(keep)s
    ) AS beyond
    FROM headrace.databases
) AS pruned
WHERE cut.database = pruned.id AND cut.epoch <= pruned.beyond AND EXISTS (
    SELECT FROM (
        SELECT cut_at FROM headrace.epochs
        WHERE database = cut.database AND epoch < cut.epoch ORDER BY epoch DESC LIMIT 1
    ) AS previous, (
        SELECT CASE WHEN cut.cut_at < %(before)s THEN %(day)s ELSE %(minute)s END AS stride
    ) AS kept
    WHERE date_bin(stride, previous.cut_at, %(noon)s) = date_bin(stride, cut.cut_at, %(noon)s)
)
"""


def in_one_span(earlier: datetime, cut_at: datetime, before: datetime) -> bool:
    """Return whether two cuts are of one minute, or of one day if the later is before a time."""
    stride = _DAY if cut_at < before else _MINUTE
    return (earlier - _NOON) // stride == (cut_at - _NOON) // stride


def prune(
    connection: psycopg.Connection[Any], tables: list[str], before: datetime, keep: int
) -> int:
    """Remove lines that are too old or too many; return how many of refreshes were removed."""
    parameters = {"tables": tables, "before": before, "keep": keep, "efforts": EFFORTS_KEPT}
    spans = {"day": _DAY, "minute": _MINUTE, "noon": _NOON}
    with connection.transaction():
        pruned = connection.execute(_REFRESHES, parameters).rowcount
        connection.execute(_RECEIPTS, parameters)
        connection.execute(_CUTS, parameters | spans)
        connection.execute(_GONE_RECEIPTS, parameters)
        return pruned + connection.execute(_GONE_REFRESHES, parameters).rowcount
