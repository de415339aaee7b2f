"""Operators and expressions that lowering must replace."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.algebra.scalar import Outer, Subquery, walk
from headrace.plan.operators import Operator
from headrace.plan.surface_operators import Lateral


def unlowered(plan: Operator) -> Iterator[object]:
    """What lowering should have taken away."""
    if isinstance(plan, Lateral):
        yield plan
    for scalar in plan.scalars:
        yield from (node for node in walk(scalar) if isinstance(node, Outer | Subquery))
    for child in plan.children:
        yield from unlowered(child)
