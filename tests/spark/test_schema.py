"""Results are brought to the stored types exactly, or not at all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.errors import InternalError
from headrace.spark.schema import spark_type, struct, to_schema
from headrace.types import KINDS, Type
from tests.spark.values import SPECIAL


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_has_the_spark_type_its_row_names(kind: Any) -> None:
    parameters: dict[str, Any] = {"precision": 12, "scale": 3} if kind.name == "numeric" else {}
    if kind.name == "array":
        parameters = {"element": Type("integer")}
    type_ = Type(kind.name, enum="public.mood" if kind.name == "enum" else None, **parameters)
    names = {"INT": "int", "SMALLINT": "smallint", "TIMESTAMP_NTZ": "timestamp_ntz"}
    expected = names.get(type_.spark, type_.spark.lower())
    assert spark_type(type_.arrow).simpleString() == expected
    assert type_.arrow in SPECIAL or kind.name in ("numeric", "array")


def test_a_type_that_is_not_stored_is_refused() -> None:
    with pytest.raises(ValueError, match="int8"):
        struct(pa.schema([("a", pa.int8())]))


@pytest.mark.parametrize(
    ("values", "before", "after"),
    [
        ([1, None], pa.int64(), pa.int32()),
        ([Decimal("1.50"), None], pa.decimal128(38, 2), pa.decimal128(5, 2)),
        ([Decimal("1.50")], pa.decimal128(38, 2), pa.decimal128(38, 10)),
        (["a", None], pa.large_string(), pa.string()),
        ([0.5, float("nan"), float("inf"), None], pa.float64(), pa.float32()),
    ],
)
def test_a_lossless_cast_is_made(
    values: list[Any], before: pa.DataType, after: pa.DataType
) -> None:
    table = pa.table({"x": pa.array(values, before), "y": pa.array(values, before)})
    cast = to_schema(table, pa.schema([("x", after)]))
    assert cast.schema == pa.schema([("x", after)])
    assert repr(cast.column("x").to_pylist()) == repr(pa.array(values, after).to_pylist())


@pytest.mark.parametrize(
    ("value", "before", "after"),
    [
        (2**31, pa.int64(), pa.int32()),
        (Decimal("1.555"), pa.decimal128(10, 3), pa.decimal128(10, 2)),
        (Decimal("1000.00"), pa.decimal128(10, 2), pa.decimal128(5, 2)),
        (0.1, pa.float64(), pa.float32()),
        ("x", pa.string(), pa.int64()),
    ],
)
def test_a_cast_that_changes_a_value_raises(
    value: Any, before: pa.DataType, after: pa.DataType
) -> None:
    with pytest.raises(InternalError) as raised:
        to_schema(pa.table({"x": pa.array([value], before)}), pa.schema([("x", after)]))
    assert "x" in raised.value.message


def test_a_missing_column_and_a_null_where_none_may_be_raise() -> None:
    table = pa.table({"x": pa.array([None], pa.int64())})
    with pytest.raises(InternalError, match="y"):
        to_schema(table, pa.schema([("y", pa.int64())]))
    with pytest.raises(InternalError, match="NULL"):
        to_schema(table, pa.schema([pa.field("x", pa.int64(), nullable=False)]))
