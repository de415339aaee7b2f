"""A served table read back, as rows to be subtracted from those that it should have."""

from __future__ import annotations

import pyarrow as pa
from psycopg import sql

from headrace.catalog.records import StreamTable
from headrace.publish.own_table import require_own_table
from headrace.publish.served import partition_column, served_name
from headrace.source.connection import Database
from headrace.source.reading import read_sql, relation_sql, to_stored
from headrace.source.table import SourceColumn
from headrace.store import WEIGHT
from headrace.verify.sample import Sample


def read_served(database: Database, table: StreamTable, sample: Sample | None = None) -> pa.Table:
    """Return the rows of the served table, or a sample, in the stored types and with weight −1."""
    columns = [
        SourceColumn(number, column.name, column.served, column.type)
        for number, column in enumerate(table.columns, 1)
    ]
    if partition_column(table) is None:
        relation = relation_sql(table.schema, table.name)
    else:
        relation = served_name(table).as_string()
    # The owner of the schema may have put a view in its place, whose functions would run as us.
    with database.session() as connection:
        require_own_table(connection, table)
    where = "true"
    if sample is not None:
        where = sample.postgres(sql.Identifier(sample.column.name))
    rows = database.arrow(read_sql(relation, columns, where))
    stored = to_stored(rows, columns)
    weights = pa.array([-1]).take(pa.array([0] * stored.num_rows, pa.int64()))
    return stored.add_column(0, WEIGHT, weights.cast(pa.int64()))
