"""Folding a long buffer in the server: changes that cancel out are not sent.

Every cut empties a buffer, so a buffer is long after a time without cuts. Its rows are full images,
of which only the sum counts: an insert and a delete of the same row cancel out, and of several
updates the first old image and the last new one remain. Where few rows would cancel out, folding
costs more than it saves: a sample of the rows decides.

Rows are the same if they are read as the same values. Where SQL calls values equal that are not the
same, their bytes are compared as well:

| read | the same, if |
|---|---|
| as text: numeric, character, time, interval, uuid, enum, jsonb | the text is |
| float | equal, and the bytes are: -0 is not 0 |
| array | equal, and the bytes are |
| any other | equal; a buffer's text has the default collation, which separates all texts |
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from headrace.capture.layout import buffer_sql
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.reading import MISFIT, WEIGHT, has_misfits, read_sql
from headrace.source.table import SourceColumn

# The bytes of values that are equal and may differ.
BYTES = {"real": "float4send", "double precision": "float8send", "array": "array_send"}
# Each column has up to two grouping keys; PostgreSQL allows 1664.
MOST_COLUMNS = 800
# A row of a buffer takes up more than this.
FEWEST_BYTES = 48

# Folding pays if at most this part of a sample of about so many rows is left.
SAMPLE_ROWS = 1500
MOST_LEFT = 0.5

SAMPLE = sql.SQL("""
SELECT count(*) FILTER (WHERE weight <> 0) <= {most_left} * sum(rows)
FROM (SELECT sum({weight}) AS weight, count(*) AS rows FROM ({read}) b GROUP BY {keys}) s""")

LONG = sql.SQL("""
SELECT CASE WHEN pg_relation_size({name}::regclass) > {bytes}
    THEN (SELECT count(*) FROM (SELECT FROM {buffer} WHERE {where} LIMIT {more}) b) = {more}
    ELSE false END""")


def pays(
    database: Database, oid: int, columns: Sequence[SourceColumn], where: str, most: int
) -> bool:
    """Return whether more than `most` rows of a buffer meet the condition and enough cancel out."""
    if not 0 < len(columns) <= MOST_COLUMNS or not is_long(database, oid, where, most):
        return False
    row = sql.SQL(", ").join(sql.Identifier(column.physical) for column in columns)
    sampled = sql.SQL("({}) AND hash_record_extended(ROW({}), 0) % {} = 0").format(
        sql.SQL(where), row, sql.Literal(1 + most // SAMPLE_ROWS)
    )
    query = SAMPLE.format(
        most_left=sql.Literal(MOST_LEFT),
        weight=sql.Identifier(WEIGHT),
        read=sql.SQL(read_sql(buffer_sql(oid), columns, sampled.as_string(), buffered=True)),
        keys=_keys(columns),
    )
    with database.session() as connection, translated():
        return connection.execute(query).fetchone() == (True,)


def is_long(database: Database, oid: int, where: str, most: int) -> bool:
    """Return whether more than `most` rows of a source's buffer meet the condition."""
    query = LONG.format(
        name=sql.Literal(buffer_sql(oid)),
        bytes=sql.Literal(most * FEWEST_BYTES),
        more=sql.Literal(most + 1),
        buffer=sql.SQL(buffer_sql(oid)),
        where=sql.SQL(where),
    )
    with database.session() as connection, translated():
        return connection.execute(query).fetchone() == (True,)


def folded_sql(relation: str, columns: Sequence[SourceColumn], where: str) -> str:
    """Return the query of `read_sql` with equal rows merged into one and their weights summed.

    Rows whose weights sum to zero are left out, unless one of their values does not fit.
    """
    selected = [sql.Identifier(column.physical) for column in columns]
    condition = sql.SQL("sum({weight}) <> 0").format(weight=sql.Identifier(WEIGHT))
    if has_misfits(columns):
        selected.append(sql.Identifier(MISFIT))
        condition = sql.SQL("{} OR {}").format(condition, sql.Identifier(MISFIT))
    return (
        sql.SQL(
            "SELECT sum({weight})::bigint AS {weight}, {shown} FROM ({rows}) b"
            " GROUP BY {keys} HAVING {kept}"
        )
        .format(
            weight=sql.Identifier(WEIGHT),
            shown=sql.SQL(", ").join(selected),
            rows=sql.SQL(read_sql(relation, columns, where, buffered=True)),
            keys=_keys(columns),
            kept=condition,
        )
        .as_string()
    )


def _keys(columns: Sequence[SourceColumn]) -> sql.Composed:
    """Return the grouping keys under which rows are the same."""
    keys: list[sql.Composable] = [sql.Identifier(column.physical) for column in columns]
    for column in columns:
        function = BYTES.get(column.type.kind) if column.type is not None else None
        if function is not None:
            name = sql.Identifier(column.physical)
            keys.append(sql.SQL("{}({})").format(sql.SQL(function), name))
    if has_misfits(columns):
        keys.append(sql.Identifier(MISFIT))
    return sql.SQL(", ").join(keys)
