"""Staging: the weighted rows of a change in a temporary table of the publishing session."""

from __future__ import annotations

import pyarrow as pa
from psycopg import sql
from pyarrow import csv

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.publish.array_text import array_text
from headrace.publish.served import Connection, served_name
from headrace.relations.visible_change import VisibleChange
from headrace.store import WEIGHT


def load_change(
    connection: Connection, table: StreamTable, change: VisibleChange
) -> sql.Identifier:
    """Load the change into a temporary table: `_weight`, then the served columns as `c1`, `c2`, …

    The table is dropped with the transaction. No more than a batch of the change is in memory at a
    time. Enums are those of the served table: a user may have given their names to other types.
    """
    name = f"headrace_change_{table.relation}"
    columns = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(_staged_value(column), sql.Identifier(f"c{i}"))
        for i, column in enumerate(table.columns, 1)
    )
    connection.execute(
        sql.SQL(
            "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT NULL::bigint AS {}, {} FROM {} s"
            " WITH NO DATA"
        ).format(sql.Identifier(name), sql.Identifier(WEIGHT), columns, served_name(table))
    )
    staged = sql.Identifier("pg_temp", name)
    copying = sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(staged)
    with connection.cursor() as cursor, cursor.copy(copying) as copy:
        for batch in change.batches():
            sink = pa.BufferOutputStream()
            csv.write_csv(_as_text(batch), sink, csv.WriteOptions(include_header=False))
            copy.write(memoryview(sink.getvalue()))
    return staged


def _staged_value(column: OutputColumn) -> sql.Composed:
    """Return NULL of the served type; a bpchar whose values have one length is padded to that."""
    if column.type.is_of_users:
        return sql.SQL("s.{}").format(sql.Identifier(column.name))
    sized = column.type.unsized and column.type.length is not None
    return sql.SQL("NULL::{}").format(
        sql.SQL(f"char({column.type.length})" if sized else column.served)
    )


def staged_columns(table: StreamTable, alias: str) -> sql.Composed:
    """Return the served columns of a staged change, in order."""
    return sql.SQL(", ").join(
        sql.Identifier(alias, f"c{i}") for i in range(1, len(table.columns) + 1)
    )


def _as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with columns as text that Arrow does not write as PostgreSQL reads them."""
    for i, field in enumerate(batch.schema):
        if pa.types.is_binary(field.type):
            texts = [
                None if value is None else "\\x" + value.hex()
                for value in batch.column(i).to_pylist()
            ]
            batch = batch.set_column(i, field.name, pa.array(texts, pa.string()))
        elif pa.types.is_list(field.type):
            arrays = [array_text(value) for value in batch.column(i).to_pylist()]
            batch = batch.set_column(i, field.name, pa.array(arrays, pa.string()))
    return batch
