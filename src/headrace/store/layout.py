"""How a relation is stored: the columns `_epoch`, `_weight` and its own, and the order of its rows.

The order of rows in large files, and the cuts between files, matter for speed alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import InternalError

EPOCH = "_epoch"
WEIGHT = "_weight"
RESERVED_PREFIX = "_"
# Rows of a row group, the least that can be read of a file. Smaller groups make larger footers.
GROUP_ROWS = 8_192
# Files of fewer rows are small: compaction merges them.
SMALL_ROWS = 100_000

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
    """Return the schema of the Delta table and of every Parquet file of a relation.

    The internal columns come first, so that any writer's Delta statistics cover them. All columns
    are nullable, as Spark makes them.
    """
    return pa.schema([(EPOCH, pa.int64()), (WEIGHT, pa.int64()), *fields(columns)])


def least_weight(rows: pa.Table) -> int | None:
    """Return the least of the rows' weights; None if there are no rows."""
    least: int | None = pc.min(rows[WEIGHT]).as_py()
    return least


def weighted(columns: pa.Schema) -> pa.Schema:
    """Return the schema of rows as they are appended and read: the weight, then the columns."""
    return pa.schema([(WEIGHT, pa.int64()), *fields(columns)])


def fields(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    """Return names and types; nullability and metadata are not stored."""
    return [(field.name, field.type) for field in schema]


def columns_of(schema: pa.Schema) -> pa.Schema:
    """Return the relation's own columns of a schema that may have internal ones."""
    return pa.schema([(name, kind) for name, kind in fields(schema) if name not in (EPOCH, WEIGHT)])


def some_columns(columns: pa.Schema, names: Collection[str] | None) -> pa.Schema:
    """Return the columns of these names, all if `names` is None, in the relation's order."""
    return pa.schema([field for field in columns if names is None or field.name in names])


def check_order(columns: pa.Schema, order: tuple[str, ...]) -> None:
    """Raise `invariant` for an order by columns that do not exist or cannot be sorted."""
    for name in order:
        if name not in columns.names or pa.types.is_list(columns.field(name).type):
            raise InternalError("invariant", f"rows cannot be in the order of {name!r}")


def check_columns(columns: pa.Schema) -> None:
    """Raise `invariant` for columns that the store could not return unchanged."""
    names = [name.lower() for name in columns.names]
    for name, kind in fields(columns):
        if name.startswith(RESERVED_PREFIX):
            raise InternalError("invariant", f"column name {name!r} has the reserved prefix")
        if names.count(name.lower()) > 1:
            raise InternalError("invariant", f"column name {name!r} occurs twice")
        value = kind.value_type if pa.types.is_list(kind) else kind
        if value not in SCALAR_TYPES and not pa.types.is_decimal128(value):
            raise InternalError("invariant", f"column {name!r} has type {kind}, not a stored type")


def conform(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """Return the rows in stored column order; raise `invariant` for other columns or types."""
    schema = weighted(columns)
    if sorted(fields(rows.schema), key=str) != sorted(fields(schema), key=str):
        raise InternalError(
            "invariant",
            "rows do not have the columns of their relation",
            detail=f"Expected {fields(schema)}, got {fields(rows.schema)}.",
        )
    if rows.column(WEIGHT).null_count:
        raise InternalError("invariant", "a row has no weight")
    return rows.select(schema.names).cast(schema)


def sorted_by(rows: pa.Table, order: tuple[str, ...]) -> pa.Table:
    """Return the rows sorted by these columns if there are enough for several row groups."""
    if not order or rows.num_rows <= GROUP_ROWS:
        return rows
    return rows.sort_by([(name, "ascending") for name in order])


@dataclass(frozen=True)
class Arrangement:
    """How a log arranges rows: large files are sorted by `order`.

    With `apart`, rows are sorted by that column first, and large files are cut between its values.
    The arrangement is fixed when the log is created.
    """

    order: tuple[str, ...] = ()
    apart: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Return all columns that rows are sorted by, each once."""
        first = () if self.apart is None else (self.apart,)
        return tuple(dict.fromkeys(first + self.order))

    @property
    def ranges(self) -> tuple[str, ...]:
        """Return the columns whose ranges differ between files."""
        return self.order if self.apart is None else (self.apart,)


AS_THEY_COME = Arrangement()


def check_apart(columns: pa.Schema, apart: str | None) -> None:
    """Raise `invariant` for a column that does not exist or whose bounds would not be exact."""
    if apart is None:
        return
    kind = columns.field(apart).type if apart in columns.names else None
    exact = (
        *(pa.types.is_integer, pa.types.is_boolean, pa.types.is_string),
        *(pa.types.is_date32, pa.types.is_timestamp),
    )
    if kind is None or not any(test(kind) for test in exact):
        raise InternalError("invariant", f"files cannot be cut between the values of {apart!r}")


def kept_apart(rows: pa.Table, arrangement: Arrangement) -> Iterator[pa.Table]:
    """Yield the rows, sorted, as one table for each file to write.

    No value of the column `apart` is in two tables, and only the last table is small. NULL is a
    value like others. Without rows there is one empty table.
    """
    apart = arrangement.apart
    if apart is None:
        yield sorted_by(rows, arrangement.order)
        return
    rows = rows.sort_by([(name, "ascending") for name in arrangement.columns])
    start = 0
    for end in _ends(rows[apart]):
        if end - start >= SMALL_ROWS:
            yield rows.slice(start, end - start)
            start = end
    if start < rows.num_rows or not rows.num_rows:
        yield rows.slice(start)


def _ends(values: pa.ChunkedArray) -> list[int]:
    """Return the end position of each run of equal values in sorted values."""
    runs = pc.run_end_encode(values.combine_chunks(), run_end_type=pa.int64())
    ends: list[int] = runs.run_ends.to_pylist()
    return ends
