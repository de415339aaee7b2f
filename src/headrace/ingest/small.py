"""Tables small enough to be copied and compared in memory.

Executors read PostgreSQL in Python processes of their own, whose start costs seconds; a table of
a few megabytes is read sooner than that.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog.records import Relation
from headrace.engine import Engine
from headrace.relations.rows import stored_schema, with_missing_columns
from headrace.source.snapshot import range_sql, read_in_snapshot
from headrace.spark.copy import LiveRows
from headrace.store import WEIGHT, net

SMALL_BYTES = 8 * 1024 * 1024


def difference_in_memory(
    engine: Engine, live: LiveRows, relation: Relation, most_rows: int
) -> pa.Table | None:
    """Return the live rows minus those at the relation's pin, netted; None if either is large."""
    pin = relation.pin
    files = engine.store.files(relation.id, pin, 0, pin.epoch)
    if sum(part.bytes for part in live.ranges) > SMALL_BYTES:
        return None
    if sum(file.rows for file in files) > most_rows:
        return None
    old = engine.store.read(relation.id, pin, 0, pin.epoch)
    negated = old.set_column(0, WEIGHT, pc.negate(old[WEIGHT]))
    return net(pa.concat_tables([*_live(live, relation), negated.cast(stored_schema(relation))]))


def _live(live: LiveRows, relation: Relation) -> list[pa.Table]:
    columns = live.table.stored
    tables = []
    for part in live.ranges:
        lock, query = range_sql(part, columns)
        for rows in read_in_snapshot(live.conninfo, live.snapshot, lock, query, columns):
            tables.append(with_missing_columns(_weighted(rows), relation))
    return tables


def _weighted(rows: pa.Table) -> pa.Table:
    if WEIGHT in rows.column_names:
        return rows
    return rows.add_column(0, WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
