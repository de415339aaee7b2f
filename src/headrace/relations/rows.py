"""The weighted rows of a relation, as Arrow holds them and as executors write them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.scalar import Column
from headrace.catalog.records import Relation
from headrace.plan.operators import Scan, Version
from headrace.store import EPOCH, WEIGHT, Arrangement


def arrow_schema(relation: Relation) -> pa.Schema:
    """Return the columns of a relation, without weight and epoch."""
    return pa.schema([(name, type_.arrow) for name, type_ in relation.columns])


def stored_schema(relation: Relation) -> pa.Schema:
    """Return the weighted rows of a relation as Arrow sees them."""
    return pa.schema([pa.field(WEIGHT, pa.int64()), *arrow_schema(relation)])


def negated(rows: pa.Table) -> pa.Table:
    """Return the rows with negated weights."""
    place = rows.schema.get_field_index(WEIGHT)
    return rows.set_column(place, rows.schema.field(place), pc.negate(rows.column(place)))


def with_epoch(text: str, epoch: int) -> str:
    """Return the query with the epoch in front, as executors write it into a log."""
    return f"SELECT CAST({epoch:d} AS BIGINT) AS `{EPOCH}`, * FROM (\n{text}\n)"


def in_ranges(text: str, arrangement: Arrangement, parts: int | None = None) -> str:
    """Return the query with its result in parts, each of which has a range of keys and is sorted.

    There are at most `parts` parts. An arrangement without columns leaves the rows unsorted.
    """
    if not arrangement.columns:
        return text if parts is None else f"SELECT /*+ COALESCE({parts:d}) */ * FROM (\n{text}\n)"
    keys = [f"`{name}`" for name in arrangement.ranges]
    split = ", ".join(keys if parts is None else [f"{parts:d}", *keys])
    ranged = f"SELECT /*+ REPARTITION_BY_RANGE({split}) */ * FROM (\n{text}\n)"
    return f"{ranged}\nSORT BY {', '.join(f'`{name}`' for name in arrangement.columns)}"


def scan_all(relation: Relation, version: Version) -> Scan:
    """Return all columns of a relation, under their own names."""
    return Scan(relation.id, tuple((n, Column(n, t)) for n, t in relation.columns), version)


def with_missing_columns(rows: pa.Table, relation: Relation) -> pa.Table:
    """Return the rows with NULL in those columns of the relation that they do not have."""
    schema = stored_schema(relation)
    columns = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
