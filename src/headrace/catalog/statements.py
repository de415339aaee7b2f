"""The statements of the PostgreSQL catalog, made from the codecs.

Rows travel to the server as one JSON array a statement, so any number of records of a kind costs
one statement, and come back as JSON objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, LiteralString

from psycopg import sql

from headrace.catalog.catalog import Change, Record
from headrace.catalog.codec import EPOCHS, RECEIPTS, REFRESHES, STATE, Codec, to_json

# The newest fence, the conditions that hold, and the aliases of attached databases by number.
FENCE = sql.SQL("""
SELECT fence, (
    SELECT json_agg(json_build_array(found.about, found.key, found.parts, found.code)) FROM (
        SELECT 'table', relation, ARRAY[schema, name], lower(status)
        FROM headrace.stream_tables WHERE status IN ('SUSPENDED', 'ERROR')
        UNION ALL
        SELECT 'source', relation, array_remove(ARRAY[alias, schema, name], NULL), lower(status)
        FROM headrace.sources LEFT JOIN (
            SELECT id, alias FROM headrace.databases WHERE address IS NOT NULL
        ) AS attached ON id = database
        WHERE status IN ('SUSPENDED', 'ERROR')
        UNION ALL
        SELECT 'database', id::text, ARRAY[alias], 'ingest-failing'
        FROM headrace.databases WHERE failing_since IS NOT NULL
    ) AS found (about, key, parts, code)
), (SELECT json_object_agg(id, alias) FROM headrace.databases WHERE address IS NOT NULL)
FROM headrace.lease FOR SHARE
""")

NEXT_EPOCH = sql.SQL("SELECT nextval('headrace.epochs_seq')")

SET_SETTING = sql.SQL(
    "INSERT INTO headrace.settings (name, value) VALUES (%s, %s::jsonb)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)

COUNT_TICKS = sql.SQL(
    "INSERT INTO headrace.strata AS known"
    " SELECT * FROM json_populate_recordset(NULL::headrace.strata, %s::json)"
    " ON CONFLICT (stratum) DO UPDATE SET"
    " refreshed = known.refreshed + excluded.refreshed,"
    " skipped = known.skipped + excluded.skipped,"
    " skipped_last = excluded.skipped_last, last_tick_at = excluded.last_tick_at"
)

FORGET_TIERS = sql.SQL("DELETE FROM headrace.tiers")
NOTE_TIERS = sql.SQL(
    "INSERT INTO headrace.tiers"
    " SELECT * FROM json_populate_recordset(NULL::headrace.tiers, %s::json)"
)

EFFORTS = sql.SQL(
    "SELECT line.mode, line.effort FROM (VALUES ('FULL'), ('DIFFERENTIAL')) AS way (mode),"
    " LATERAL (SELECT id, mode, effort FROM headrace.refreshes"
    ' WHERE "table" = %s AND mode = way.mode AND error IS NULL AND effort IS NOT NULL'
    " ORDER BY id DESC LIMIT %s) AS line ORDER BY line.id DESC"
)

UNSET_SETTING = sql.SQL("DELETE FROM headrace.settings WHERE name = %s")

# Ends of `select`.
BY_ID = " WHERE id = %s"
BY_STRATUM = " ORDER BY stratum"
BY_RELATION = " ORDER BY relation"
LATEST = " ORDER BY id DESC LIMIT %s"
LATEST_OF = ' WHERE "table" = %s ORDER BY id DESC LIMIT %s'
CUTS_AT = (
    " WHERE (database, epoch) IN (SELECT id, ("
    "SELECT max(epoch) FROM headrace.epochs WHERE database = id AND epoch <= %s"
    ") FROM headrace.databases) ORDER BY database"
)


def of_change(change: Change) -> Iterator[tuple[sql.Composed, tuple[Any, ...]]]:
    """Yield the statements of a commit with their parameters, in an order that keeps references."""
    for codec in reversed(STATE):
        gone = _by_key(codec, change.remove)
        if gone:
            yield delete(codec), (list(gone),)
    for codec in STATE:
        rows = [codec.encode(record) for record in _by_key(codec, change.put).values()]
        if rows:
            yield upsert(codec), (to_json(rows),)
    for old, new in change.successors:
        for codec in (REFRESHES, RECEIPTS):
            yield succeed(codec), (new, old)
    history: tuple[tuple[Codec[Any], tuple[Any, ...]], ...] = (
        (EPOCHS, change.epochs),
        (REFRESHES, change.refreshes),
        (RECEIPTS, change.receipts),
    )
    for codec, lines in history:
        if lines:
            yield insert(codec), (to_json([codec.encode(line) for line in lines]),)


@cache
def insert(codec: Codec[Any]) -> sql.Composed:
    """Return a statement that adds rows; the table generates `id`."""
    columns = _columns(codec, without="id" if codec.key is None else None)
    return sql.SQL(
        "INSERT INTO {table} ({columns})"
        " SELECT {columns} FROM json_populate_recordset(NULL::{table}, %s::json)"
    ).format(table=_table(codec), columns=columns)


@cache
def upsert(codec: Codec[Any]) -> sql.Composed:
    """Return a statement that adds rows, or replaces those with the same key."""
    assert codec.key is not None
    assignments = sql.SQL(", ").join(
        sql.SQL("{column} = excluded.{column}").format(column=sql.Identifier(field.name))
        for field in codec.fields
        if field.name != codec.key
    )
    return sql.SQL("{insert} ON CONFLICT ({key}) DO UPDATE SET {assignments}").format(
        insert=insert(codec), key=sql.Identifier(codec.key), assignments=assignments
    )


@cache
def delete(codec: Codec[Any]) -> sql.Composed:
    assert codec.key is not None
    return sql.SQL("DELETE FROM {table} WHERE {key} = ANY(%s)").format(
        table=_table(codec), key=sql.Identifier(codec.key)
    )


@cache
def succeed(codec: Codec[Any]) -> sql.Composed:
    return sql.SQL('UPDATE {table} SET "table" = %s WHERE "table" = %s').format(table=_table(codec))


@cache
def select(codec: Codec[Any], end: LiteralString = "") -> sql.Composed:
    """Return a query for rows as JSON, one value each; `end` is WHERE, ORDER BY and LIMIT."""
    return sql.SQL("SELECT to_json(line) FROM (SELECT {columns} FROM {table}{end}) AS line").format(
        columns=_columns(codec), table=_table(codec), end=sql.SQL(end)
    )


@cache
def select_state() -> sql.Composed:
    """Return a query for pairs of a table's name and a row's JSON text; settings are one object.

    The query is a single statement because a statement sees a single snapshot.
    """
    lines = [
        sql.SQL("SELECT {name}, line::text FROM ({rows}) AS of (line)").format(
            name=sql.Literal(codec.table), rows=select(codec)
        )
        for codec in STATE
    ]
    settings = sql.SQL(
        "SELECT 'settings', json_object_agg(name, value)::text FROM headrace.settings"
        " HAVING count(*) > 0"
    )
    return sql.SQL(" UNION ALL ").join((*lines, settings))


def _by_key(codec: Codec[Any], records: tuple[Record, ...]) -> dict[Any, Record]:
    """Return the records of the codec's kind; of two with one key the later counts."""
    assert codec.key is not None
    return {
        getattr(record, codec.key): record for record in records if isinstance(record, codec.record)
    }


def _table(codec: Codec[Any]) -> sql.Identifier:
    return sql.Identifier("headrace", codec.table)


def _columns(codec: Codec[Any], without: str | None = None) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.Identifier(field.name) for field in codec.fields if field.name != without
    )
