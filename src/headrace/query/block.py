"""What a query, or a query inside one, becomes when it is bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.algebra.scalar import Column
from headrace.plan.operators import Aggregate, Operator
from headrace.query.literals import Untyped


@dataclass(frozen=True)
class Block:
    """A bound query: its rows and the names of its columns.

    `quotients` are those of its columns that come from a numeric division: they have more digits
    than it is right to show. `untyped` gives, by position, the columns that are bare constants: a
    UNION decides what they are, anywhere else they are text.
    """

    plan: Operator
    names: tuple[str, ...]
    quotients: frozenset[Column] = frozenset()
    untyped: Mapping[int, Untyped] = field(default_factory=dict)


def distinct(plan: Operator) -> Operator:
    """Every row once: a group by all columns, without anything to compute."""
    return Aggregate(plan, plan.columns, ())
