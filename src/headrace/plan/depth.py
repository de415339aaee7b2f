"""How deep a plan is; found without recursion, since it guards against that."""

from __future__ import annotations

from headrace.plan.operators import Operator


def depth(plan: Operator) -> int:
    """The number of operators on the longest way down."""
    deepest = 0
    stack = [(plan, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in node.children)
    return deepest
