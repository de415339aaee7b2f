"""The columns of a stored relation: `_epoch`, `_weight`, then the relation's own."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import InternalError

EPOCH = "_epoch"
WEIGHT = "_weight"
RESERVED_PREFIX = "_"
# Rows of a row group: the least that can be read of a file. In fewer, the footers grow.
GROUP_ROWS = 8_192

SCALAR_TYPES: tuple[pa.DataType, ...] = (
    pa.bool_(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
)


def stored(columns: pa.Schema) -> pa.Schema:
    """The schema of the Delta table and of every Parquet file of a relation.

    The internal columns come first, so that any writer's Delta statistics cover them. All columns
    are nullable, as Spark makes them.
    """
    return pa.schema([(EPOCH, pa.int64()), (WEIGHT, pa.int64()), *fields(columns)])


def least_weight(rows: pa.Table) -> int | None:
    """The least of the rows' weights; None where there are no rows."""
    least: int | None = pc.min(rows[WEIGHT]).as_py()
    return least


def weighted(columns: pa.Schema) -> pa.Schema:
    """The schema of rows as they are appended and read: the weight, then the columns."""
    return pa.schema([(WEIGHT, pa.int64()), *fields(columns)])


def fields(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    """Names and types; nullability and metadata play no part in what is stored."""
    return [(field.name, field.type) for field in schema]


def columns_of(schema: pa.Schema) -> pa.Schema:
    """The relation's own columns of a schema that may have internal ones."""
    return pa.schema([(name, kind) for name, kind in fields(schema) if name not in (EPOCH, WEIGHT)])


def some_columns(columns: pa.Schema, names: Collection[str] | None) -> pa.Schema:
    """The columns of these names, all if none are given, in the relation's order."""
    return pa.schema([field for field in columns if names is None or field.name in names])


def check_order(columns: pa.Schema, order: tuple[str, ...]) -> None:
    """Refuse an order by columns that are not there, or that nothing sorts by: a bug."""
    for name in order:
        if name not in columns.names or pa.types.is_list(columns.field(name).type):
            raise InternalError("invariant", f"rows cannot be in the order of {name!r}")


def check_columns(columns: pa.Schema) -> None:
    """Refuse a relation that the store could not give back as it was: a bug of the caller."""
    names = [name.lower() for name in columns.names]
    for name, kind in fields(columns):
        if name.startswith(RESERVED_PREFIX):
            raise InternalError("invariant", f"column name {name!r} has the reserved prefix")
        if names.count(name.lower()) > 1:
            raise InternalError("invariant", f"column name {name!r} is there twice")
        value = kind.value_type if pa.types.is_list(kind) else kind
        if value not in SCALAR_TYPES and not pa.types.is_decimal128(value):
            raise InternalError("invariant", f"column {name!r} has type {kind}, not a stored type")


def conform(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows in stored column order; other columns or types than the relation's are a bug."""
    wanted = weighted(columns)
    if sorted(fields(rows.schema), key=str) != sorted(fields(wanted), key=str):
        raise InternalError(
            "invariant",
            "rows do not have the columns of their relation",
            detail=f"wanted {fields(wanted)}, got {fields(rows.schema)}.",
        )
    if rows.column(WEIGHT).null_count:
        raise InternalError("invariant", "a row has no weight")
    return rows.select(wanted.names).cast(wanted)


def sorted_by(rows: pa.Table, order: tuple[str, ...]) -> pa.Table:
    """The rows sorted by these columns, where that can spare a look-up anything."""
    if not order or rows.num_rows <= GROUP_ROWS:
        return rows
    return rows.sort_by([(name, "ascending") for name in order])
