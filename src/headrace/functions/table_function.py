"""The record of a function that returns rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headrace.algebra.scalar import Scalar, Value
from headrace.functions.function import spark_function
from headrace.functions.spark import string
from headrace.types import Type

Types = tuple[Type, ...]
Rows = list[tuple[Value, ...]]


@dataclass(frozen=True)
class TableFunction:
    """A PostgreSQL function in FROM with its exact counterpart on Spark.

    `types_of` gives the types of its columns, or None if the arguments are not among those that
    both engines treat alike. `spark` renders an array with an element for each row: a value, or
    where there are several columns a `row`; the array is NULL or empty where there are no rows.
    `evaluate` computes the rows on Python values; both take the types of the columns. A strict
    function gives no rows where an argument is NULL. `unique` says that no row comes twice.
    `columns` are names that PostgreSQL gives the columns itself; without them a single column is
    called as the function's alias. `raises`, `syntax` and `note` are as for any function.
    """

    name: str
    types_of: Callable[[Sequence[Scalar]], Types | None]
    spark: Callable[[Sequence[exp.Expression], Sequence[Type], Types], exp.Expression]
    evaluate: Callable[[Sequence[Value], Types], Rows]
    syntax: str
    columns: tuple[str, ...] = ()
    strict: bool = True
    raises: bool = False
    unique: bool = False
    note: str = ""

    def rows(self, values: Sequence[Value], types: Types) -> Rows:
        """Return the rows for the arguments' values."""
        if self.strict and any(value is None for value in values):
            return []
        return self.evaluate(values, types)


def row(values: Sequence[exp.Expression]) -> exp.Expression:
    """Return an element of the array where there are several columns."""
    parts: list[exp.Expression] = []
    for i, value in enumerate(values, 1):
        parts += (string(field_name(i)), value)
    return spark_function("named_struct", *parts)


def field_name(position: int) -> str:
    """Return the name of a row's field, positions counted from 1."""
    return f"f{position}"
