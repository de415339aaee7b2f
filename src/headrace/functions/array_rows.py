"""unnest: the elements of arrays as rows, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from sqlglot import exp

from headrace.algebra.scalar import Scalar, Value
from headrace.functions.function import spark_cast, spark_function
from headrace.functions.table_function import Rows, TableFunction, Types, field_name
from headrace.types import Type

Expression = exp.Expression


def _types(arguments: Sequence[Scalar]) -> Types | None:
    elements = [argument.type.element for argument in arguments]
    found = tuple(element for element in elements if element is not None)
    return found if len(found) == len(elements) else None


def _spark(arrays: Sequence[Expression], given: Sequence[Type], types: Types) -> Expression:
    if len(arrays) == 1:
        return arrays[0]
    # NULL is an array without elements where another one has some.
    full = (
        spark_function("coalesce", array, spark_cast(spark_function("array"), type_))
        for array, type_ in zip(arrays, given, strict=True)
    )
    fields = ", ".join(f"{field_name(i)}: {type_.spark}" for i, type_ in enumerate(types, 1))
    rows = exp.DataType.build(f"ARRAY<STRUCT<{fields}>>", dialect="spark")
    return exp.Cast(this=spark_function("arrays_zip", *full), to=rows)


def _rows(values: Sequence[Value], _: Types) -> Rows:
    arrays = [value if isinstance(value, tuple) else () for value in values]
    return list(zip_longest(*arrays))


UNNEST = TableFunction(
    "unnest",
    _types,
    _spark,
    _rows,
    "unnest(a), unnest(a, b)",
    strict=False,
    note="A shorter array is filled with NULLs.",
)
