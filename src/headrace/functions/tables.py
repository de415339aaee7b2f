"""The table of functions that return rows: PostgreSQL's meaning, Spark's form, Python's value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar, Value
from headrace.functions.function import spark_cast, spark_function
from headrace.functions.json_rows import JSON_ROWS
from headrace.functions.regular import Regular, parse_pattern
from headrace.functions.series import GENERATE_SERIES
from headrace.functions.spark import case, number, string
from headrace.functions.table_function import Rows, TableFunction, Types, field_name, row
from headrace.functions.text import all_text, text_of
from headrace.types import Type

Expression = exp.Expression


def _types(arguments: Sequence[Scalar]) -> Types | None:
    elements = [argument.type.element for argument in arguments]
    present_types = tuple(element for element in elements if element is not None)
    return present_types if len(present_types) == len(elements) else None


def _spark(arrays: Sequence[Expression], given_types: Sequence[Type], types: Types) -> Expression:
    if len(arrays) == 1:
        return arrays[0]
    # NULL is an array without elements where another one has some.
    full = (
        spark_function("coalesce", array, spark_cast(spark_function("array"), type_))
        for array, type_ in zip(arrays, given_types, strict=True)
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


def _cells_types(arguments: Sequence[Scalar]) -> Types | None:
    """Return the cells' types; only the binder makes such calls, and knows the column count."""
    return tuple(argument.type for argument in arguments)


def _cells(cells: Sequence[Expression], _: Sequence[Type], types: Types) -> Expression:
    """Return the array of the rows that the cells make."""
    width = len(types)
    typed = [spark_cast(cell, types[i % width]) for i, cell in enumerate(cells)]
    if width == 1:
        return spark_function("array", *typed)
    rows = (row(typed[i : i + width]) for i in range(0, len(typed), width))
    return spark_function("array", *rows)


def _cell_rows(values: Sequence[Value], types: Types) -> Rows:
    width = len(types)
    return [tuple(values[i : i + width]) for i in range(0, len(values), width)]


def _split_types(arguments: Sequence[Scalar]) -> Types | None:
    """Return text for a text, a constant delimiter, and perhaps a constant that stands for NULL."""
    text, *constants = arguments
    if len(arguments) not in (2, 3) or not all_text(arguments):
        return None
    written = all(isinstance(each, Literal) for each in constants)
    delimiter = constants[0]
    supported = written and isinstance(delimiter, Literal) and isinstance(delimiter.value, str)
    return (text_of((text,)),) if supported else None


def _split(arguments: Sequence[Expression], *_: object) -> Expression:
    text, delimiter, *null = arguments
    if delimiter.name:
        pattern = "".join(f"\\x{{{ord(character):x}}}" for character in delimiter.name)
        parts = spark_function("split", text, string(pattern), number(-1))
    else:
        parts = spark_function("array", text)
    if null and isinstance(null[0], exp.Literal):
        part = exp.to_identifier("part")
        part_or_null = spark_function("nullif", exp.Column(this=part.copy()), null[0])
        parts = spark_function(
            "transform", parts, exp.Lambda(this=part_or_null, expressions=[part])
        )
    # There are no parts of an empty text.
    some = exp.NEQ(this=text.copy(), expression=string(""))
    return case(some, parts, exp.Null())


def _split_rows(values: Sequence[Value], _: Types) -> Rows:
    text, delimiter, *null = values
    if not text:
        return []
    parts = str(text).split(str(delimiter)) if delimiter else [str(text)]
    return [(None,) if null and part == null[0] else (part,) for part in parts]


def _pattern(pattern: object) -> Regular | None:
    """Return a pattern whose matches both engines find in the same places, none of them empty."""
    read = parse_pattern(pattern) if isinstance(pattern, str) else None
    return read if read is not None and read.unique and not read.nothing else None


def _matched_types(arguments: Sequence[Scalar]) -> Types | None:
    if len(arguments) != 2 or not all_text(arguments):
        return None
    text, pattern = arguments
    read = _pattern(pattern.value) if isinstance(pattern, Literal) else None
    if read is None or (read.by_collation and not text.type.folds):
        return None
    return (text_of((text,)),)


def _matched(arguments: Sequence[Expression], *_: object) -> Expression:
    text, pattern = arguments
    read = _pattern(pattern.name)
    assert read is not None
    return spark_function("split", text, string(f"(?s){read.java}"), number(-1))


def _matched_rows(values: Sequence[Value], _: Types) -> Rows:
    text, pattern = values
    read = _pattern(pattern)
    assert read is not None
    whole, start, rows = str(text), 0, list[tuple[Value, ...]]()
    for match in re.finditer(read.python, whole, re.DOTALL | re.ASCII):
        rows.append((whole[start : match.start()],))
        start = match.end()
    return [*rows, (whole[start:],)]


TABLE_FUNCTIONS: tuple[TableFunction, ...] = (
    TableFunction(
        "rows",
        _cells_types,
        _cells,
        _cell_rows,
        "unnest(ARRAY[a, b, …]), unnest(ARRAY[a, b], ARRAY[c, d]), LATERAL (VALUES (a, b), …)",
        strict=False,
        note="A shorter list is filled with NULLs.",
    ),
    UNNEST,
    GENERATE_SERIES,
    TableFunction(
        "string_to_table",
        _split_types,
        _split,
        _split_rows,
        "string_to_table(a, ','), string_to_table(a, ',', 'null'), unnest(string_to_array(a, ','))",
        strict=False,
        note="The delimiter is a constant, and not NULL.",
    ),
    TableFunction(
        "regexp_split_to_table",
        _matched_types,
        _matched,
        _matched_rows,
        "regexp_split_to_table(a, 'pattern')",
        note="The pattern is as for regexp_replace.",
    ),
    *JSON_ROWS,
)
TABLE_FUNCTION_BY_NAME = {function.name: function for function in TABLE_FUNCTIONS}

__all__ = ["TABLE_FUNCTIONS", "TABLE_FUNCTION_BY_NAME", "TableFunction", "field_name"]
