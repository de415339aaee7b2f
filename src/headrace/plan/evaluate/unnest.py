"""Unnest by its definition: for each row the rows of the function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headrace.algebra.scalar import Scalar, Value
from headrace.functions.tables import TABLE_FUNCTION_BY_NAME
from headrace.plan.operators import Unnest

if TYPE_CHECKING:
    from headrace.plan.evaluate.evaluator import Row


def unnested(
    plan: Unnest, rows: list[tuple[Row, int]], scalar: Callable[[Scalar, Row], Value]
) -> Iterator[tuple[Row, int]]:
    """The rows of `plan` from those of its child; `scalar` evaluates an argument."""
    function = TABLE_FUNCTION_BY_NAME[plan.function]
    types = tuple(column.type for column in plan.outputs)
    added = plan.columns[len(plan.child.columns) :]
    for row, weight in rows:
        found = function.rows([scalar(argument, row) for argument in plan.arguments], types)
        for number, values in enumerate(found, 1):
            yield {**row, **dict(zip(added, (*values, number), strict=False))}, weight
        if plan.keep and not found:
            yield {**row, **dict.fromkeys(added)}, weight
