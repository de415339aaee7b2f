"""Compute expressions and conditions over rows in memory, once for each different value."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.scalar import Column, Scalar, Value, columns_of, walk
from headrace.functions.function import EvaluationError
from headrace.plan.evaluate import scalar
from headrace.plan.operators import Scan

# For more different values Spark is as quick.
MOST_COMPUTED_VALUES = 20_000


def values_of(rows: pa.Table, scan: Scan, values: tuple[Scalar, ...]) -> pa.Table | None:
    """Return a column for each expression over rows of the scan.

    An expression reads one column. None if one of these columns has too many values.
    """
    physical = {column: name for name, column in scan.fields}
    columns: list[pa.ChunkedArray] = []
    for value in values:
        if isinstance(value, Column):
            columns.append(rows[physical[value]])
            continue
        (column,) = columns_of(value)
        column_values = rows[physical[column]]
        different = column_values.unique()
        if len(different) > MOST_COMPUTED_VALUES:
            return None
        results = [scalar(value, {column: each}) for each in different.to_pylist()]
        places = pc.index_in(column_values, value_set=different)
        columns.append(pc.take(pa.array(results, value.type.arrow), places))
    return pa.Table.from_arrays(columns, names=[f"v{i}" for i in range(len(values))])


# Conditions on more different values than these are left to the query.
MOST_TRIED_VALUES = 3_000
# Nor are conditions of more parts than these, a long list for example.
MOST_NODES = 100


def passing(rows: pa.Table, scan: Scan, conditions: Iterable[Scalar]) -> pa.Table:
    """Return the rows of a scan that no condition is known to reject.

    Conditions that take too long to evaluate here are left to the query.
    """
    physical = {column: name for name, column in scan.fields}
    for condition in conditions:
        (column,) = columns_of(condition)
        dear = sum(1 for _ in walk(condition)) > MOST_NODES
        if dear or not column.type.row.evaluated or not rows.num_rows:
            continue
        column_values = rows[physical[column]]
        values = column_values.unique()
        if len(values) > MOST_TRIED_VALUES:
            continue
        verdicts = _verdicts(condition)
        holds = [_holds(condition, column, value, verdicts) for value in values.to_pylist()]
        if not all(holds):
            rows = rows.filter(pc.is_in(column_values, values.filter(pa.array(holds))))
    return rows


def _holds(condition: Scalar, column: Column, value: Value, verdicts: dict[Value, bool]) -> bool:
    """Return whether the condition is true for a value, if it is not known already."""
    verdict = verdicts.get(value)
    if verdict is None:
        try:
            verdict = scalar(condition, {column: value}) is True
        except EvaluationError:
            # Only the query decides whether it evaluates the condition for the row at all.
            verdict = True
        if len(verdicts) < MOST_TRIED_VALUES:
            verdicts[value] = verdict
    return verdict


@lru_cache(maxsize=512)
def _verdicts(_: Scalar) -> dict[Value, bool]:
    """Return the remembered results of a condition by value."""
    return {}
