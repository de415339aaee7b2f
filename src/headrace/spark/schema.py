"""Arrow and Spark schemas of the stored types, and exact casts of results to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import InternalError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

WEIGHT = "_weight"
EPOCH = "_epoch"
LOG_FIELDS = (pa.field(EPOCH, pa.int64()), pa.field(WEIGHT, pa.int64()))


def struct(schema: pa.Schema) -> StructType:
    """Return the Spark schema with the same names and types; every column is nullable."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, spark_type(field.type)) for field in schema])


def spark_type(data_type: pa.DataType) -> DataType:
    """Return the Spark type of a stored Arrow type."""
    from pyspark.sql import types

    if pa.types.is_decimal128(data_type):
        return types.DecimalType(data_type.precision, data_type.scale)
    if pa.types.is_list(data_type):
        return types.ArrayType(spark_type(data_type.value_type))
    simple: dict[pa.DataType, DataType] = {
        pa.bool_(): types.BooleanType(),
        pa.int16(): types.ShortType(),
        pa.int32(): types.IntegerType(),
        pa.int64(): types.LongType(),
        pa.float32(): types.FloatType(),
        pa.float64(): types.DoubleType(),
        pa.string(): types.StringType(),
        pa.binary(): types.BinaryType(),
        pa.date32(): types.DateType(),
        pa.timestamp("us"): types.TimestampNTZType(),
        pa.timestamp("us", "UTC"): types.TimestampType(),
    }
    if data_type not in simple:
        raise ValueError(f"not a stored type: {data_type}")
    return simple[data_type]


def to_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with exactly the schema's columns, order and types.

    A value that a cast would change raises: nothing is rounded, truncated or wrapped.
    """
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise InternalError(
            "invariant", f"a result lacks the columns {missing}; it has {table.column_names}"
        )
    columns = [_exactly(table.column(field.name), field) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _exactly(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if not field.nullable and column.null_count:
        raise InternalError("invariant", f"column {field.name} must not contain NULLs")
    if column.type == field.type:
        return column
    try:
        cast = column.cast(field.type)
        back = cast.cast(column.type)
    except pa.ArrowInvalid as error:
        raise _changed(column, field) from error
    if pa.types.is_list(column.type):
        # Arrow cannot compare lists; the elements are checked instead.
        return _elements_exactly(column, field, cast)
    # Arrow checks decimals and integers itself, but not float64 to float32.
    same = pc.fill_null(pc.equal(back, column), True)
    if pa.types.is_floating(column.type):
        same = pc.or_(same, pc.fill_null(pc.is_nan(column), True))
    if not pc.all(same, min_count=0).as_py():
        raise _changed(column, field)
    return cast


def _elements_exactly(
    column: pa.ChunkedArray, field: pa.Field, cast: pa.ChunkedArray
) -> pa.ChunkedArray:
    elements = pa.chunked_array(
        [chunk.flatten() for chunk in column.chunks], column.type.value_type
    )
    _exactly(elements, pa.field(field.name, field.type.value_type))
    return cast


def _changed(column: pa.ChunkedArray, field: pa.Field) -> InternalError:
    return InternalError(
        "invariant",
        f"a cast to {field.type} would change a {column.type} value of column {field.name}",
    )
