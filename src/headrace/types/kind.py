"""The record of a PostgreSQL type: all that depends on the type. The records are in `kinds`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

if TYPE_CHECKING:
    from headrace.types.type import Type

Comparison = Literal["ordered", "equality", "none"]
Family = Literal[
    "boolean",
    "integer",
    "float",
    "numeric",
    "text",
    "bytes",
    "moment",
    "time",
    "interval",
    "uuid",
    "enum",
    "document",
    "array",
]


@dataclass(frozen=True)
class Kind:
    """One PostgreSQL type: its stored form, how PostgreSQL reads it, and what its values can do.

    `read` and `misfit` are SQL templates over `{column}` (a quoted column reference) and the
    type's parameters: the expression that a SELECT reads, and a condition that is true when the
    value does not fit. No template casts a value of a type that users may own: a cast of the
    owner's would run with Headrace's rights.

    | field | meaning |
    |---|---|
    | `sql` | the type of a served column |
    | `catalog_name` | pg_type.typname, None for types without one name |
    | `buffer` | the type of a column of a change buffer, None: the type itself |
    | `hint` | how a constant is written |
    | `form` | the text that a cast from text accepts, None: no such cast |
    | `limits` | the least and the greatest value of an integer |
    | `bounds` | the first and the last stored value of a moment |
    | `comparison` | the comparisons that mean the same in both engines |
    | `stored_equality` | values are equal exactly where their stored values are |
    | `equal_values_differ` | values that are stored differently may be equal in PostgreSQL |
    | `python_value` | Arrow's Python value is the value that expressions are defined over |
    | `evaluated` | conditions over it may be evaluated on the driver, without Spark |
    | `foldable` | a computed constant is rendered as a literal |
    | `prints_alike` | both engines print it as the same text |
    | `has_extremum` | MIN and MAX exist |
    | `in_arrays` | arrays of it are stored |
    | `unbounded` | a value may be too long for an index entry |
    | `few_values` | there are so few values that each can have a partition |
    | `partitioned` | a stream table can be partitioned by its values |
    | `sampled` | a sample to be verified can be chosen by its values |
    """

    name: str
    oid: int | None
    sql: Callable[[Type], str]
    arrow: Callable[[Type], pa.DataType]
    spark: Callable[[Type], str]
    family: Family
    catalog_name: str | None
    hint: str
    form: str | None = None
    comparison: Comparison = "ordered"
    read: str = "{column}"
    misfit: str | None = None
    buffer: str | None = None
    limits: tuple[int, int] | None = None
    bounds: tuple[str, str] | None = None
    stored_equality: bool = False
    equal_values_differ: bool = False
    python_value: bool = False
    evaluated: bool = False
    foldable: bool = False
    prints_alike: bool = False
    has_extremum: bool = False
    in_arrays: bool = True
    unbounded: bool = False
    few_values: bool = False
    partitioned: bool = False
    sampled: bool = False
