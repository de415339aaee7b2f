"""The stage that ends in a window or in the first rows of groups."""

from __future__ import annotations

from headrace.algebra.scalar import Column, Scalar
from headrace.plan.operators import Operator, Top, Window
from headrace.plan.stage import Outputs, Partitions, Stage


def partition_stage(
    name: str, region: Operator, operator: Window | Top, outputs: Outputs, condition: Scalar | None
) -> Stage:
    """The stage of `operator` over `region`, shown through `outputs` where `condition` holds.

    A top whose first rows are all shown stores them whole, so that changes can be merged with it.
    """
    keys = _stored("partition_key", operator.keys)
    merged = isinstance(operator, Top) and operator.is_merged and condition is None
    rows = _stored("top", region.columns) if merged else ()
    partitions = Partitions(operator, keys, rows)
    return Stage(name, region, outputs, partitions=partitions, condition=condition, additive=merged)


def _stored(name: str, columns: tuple[Column, ...]) -> tuple[tuple[Column, Column], ...]:
    """The columns under new ids, as they are stored."""
    return tuple((Column(f"{name}_{i}", c.type), c) for i, c in enumerate(columns, 1))
