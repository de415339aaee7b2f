"""The depth of a plan, and limits to the size of an expression that is composed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.algebra.scalar import Call, Column, Scalar, substitute
from headrace.plan.operators import Operator


def depth(plan: Operator) -> int:
    """Return the number of operators on the longest path down."""
    deepest = 0
    stack = [(plan, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in node.children)
    return deepest


LARGEST = 1000
"""Nodes of an expression that was composed; one that a query wrote may be larger."""
DEEPEST = 32


@dataclass(frozen=True)
class Extent:
    """The number of nodes of an expression, and how many of them stand above each other."""

    nodes: int
    depth: int


ONE = Extent(1, 1)


def extent(scalar: Scalar, of: Mapping[Column, Extent] | None = None) -> Extent:
    """Return the expression's extent; `of` has those of the expressions for its columns."""
    if isinstance(scalar, Column) and of is not None:
        return of.get(scalar, ONE)
    if not isinstance(scalar, Call):
        return ONE
    inner = [extent(argument, of) for argument in scalar.arguments]
    nodes = 1 + sum(each.nodes for each in inner)
    return Extent(nodes, 1 + max((each.depth for each in inner), default=0))


def compose(scalar: Scalar, values: Mapping[Column, Scalar]) -> Scalar | None:
    """Return the expression with columns replaced by their values.

    Return None if it would become too large.
    """
    before = extent(scalar)
    after = extent(scalar, {column: extent(value) for column, value in values.items()})
    if after.nodes > max(before.nodes, LARGEST) or after.depth > max(before.depth, DEEPEST):
        return None
    return substitute(scalar, lambda column: values.get(column, column))
