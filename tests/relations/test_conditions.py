"""Conditions tried on the values of a column, and keys made of rows that were found."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from headrace.algebra.scalar import Column, Literal, Scalar, Value
from headrace.delta.reduction import Restriction
from headrace.functions import call
from headrace.plan.operators import Scan
from headrace.relations import row_expressions
from headrace.relations.reduce import keys_table
from headrace.relations.row_expressions import passing
from headrace.types import BIGINT, INTEGER, TEXT, Type

NAME, SIZE = Column("name", Type("character", length=10)), Column("size", INTEGER)
SCAN = Scan("r", (("c1", NAME), ("c2", SIZE)))
ROWS = pa.table(
    {
        "_weight": pa.array([1] * 5),
        "c1": pa.array(["MED BOX", "BOX", None, "box", "MED BAG"]),
        "c2": pa.array([1, 2, 3, None, 5], pa.int32()),
    }
)


def literal(value: Value, type_: Type = INTEGER) -> Literal:
    return Literal(value, type_)


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        (call("=", NAME, literal("MED BOX", NAME.type)), [1]),
        (call("<>", NAME, literal("BOX", NAME.type)), [1, None, 5]),
        (call("is null", NAME), [3]),
        (call(">", SIZE, literal(1)), [2, 3, 5]),
        (call("not", call("=", SIZE, literal(2))), [1, 3, 5]),
        (call("=", SIZE, Literal(None, INTEGER)), []),
    ],
)
def test_rows_for_which_a_condition_is_true(condition: Scalar, left: list[int | None]) -> None:
    for _ in ("tried", "remembered"):
        assert passing(ROWS, SCAN, [condition])["c2"].to_pylist() == left


def test_all_conditions_hold() -> None:
    both = [call(">", SIZE, literal(1)), call("<", SIZE, literal(5))]
    assert passing(ROWS, SCAN, both)["c2"].to_pylist() == [2, 3]


def test_what_raises_is_left_to_the_query() -> None:
    risky = call("=", call("/", literal(6), call("-", SIZE, literal(2))), literal(-6))
    assert passing(ROWS, SCAN, [risky])["c2"].to_pylist() == [1, 2]


def test_too_many_values_are_left_to_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_expressions, "MOST_TRIED_VALUES", 4)
    assert passing(ROWS, SCAN, [call("=", SIZE, literal(1))]).num_rows == 5


def test_a_numeric_is_compared_by_its_value() -> None:
    price = Column("price", Type("numeric", precision=10, scale=2))
    scan = Scan("r", (("c1", price),))
    rows = pa.table({"c1": pa.array([Decimal("1.50"), Decimal("2.00")], pa.decimal128(10, 2))})
    is_two = call("=", price, literal(2))
    assert passing(rows, scan, [is_two])["c1"].to_pylist() == [Decimal("2.00")]


def restriction(*, null_safe: bool = False, padded: bool = False) -> Restriction:
    return Restriction((), SCAN, ("k",), (), null_safe, padded)


def test_keys_are_there_once_and_fit_their_column() -> None:
    found = [
        pa.table({"a": pa.array([1, 2, None, 1], pa.int64())}),
        pa.table({"b": pa.array([2**40, 7], pa.int64())}),
    ]
    narrow = pa.schema([("k", pa.int32())])
    keys = keys_table(found, narrow, restriction())
    assert sorted(keys["k"].to_pylist()) == [1, 2, 7]
    assert keys.schema.field("k").type == pa.int32()
    safe = keys_table(found, narrow, restriction(null_safe=True))["k"].to_pylist()
    assert sorted(safe, key=str) == [1, 2, 7, None]


def test_a_key_of_nulls_where_rows_are_padded() -> None:
    found = [pa.table({"a": pa.array(["x"])})]
    schema = pa.schema([("k", TEXT.arrow)])
    keys = keys_table(found, schema, restriction(null_safe=True, padded=True))
    assert sorted(keys["k"].to_pylist(), key=str) == [None, "x"]
    assert keys_table([], pa.schema([("k", BIGINT.arrow)]), restriction()).num_rows == 0


@pytest.mark.parametrize("given", [pa.int16(), pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize("kept", [pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_keys_of_any_width_restrict_columns_of_any_width(
    given: pa.DataType, kept: pa.DataType
) -> None:
    found = [pa.table({"a": pa.array([-5, 0, 32767, None], given)})]
    keys = keys_table(found, pa.schema([("k", kept)]), restriction())
    assert sorted(keys["k"].to_pylist()) == [-5, 0, 32767]


def test_long_conditions_are_left_to_the_query() -> None:
    long: Scalar = call("=", SIZE, literal(1))
    for value in range(40):
        long = call("or", long, call("=", SIZE, literal(100 + value)))
    assert passing(ROWS, SCAN, [long]).num_rows == 5
