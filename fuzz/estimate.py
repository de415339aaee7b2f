"""How many rows a relation may have, roughly: so that joins stay small."""

from __future__ import annotations

from fuzz.from_clause import From, Item, Leaf
from fuzz.inside import children
from fuzz.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Recursion,
    Relation,
    Scan,
    Series,
    SetOperation,
    TopK,
    Values,
)

ROWS = 12
LARGEST = 350


def size_of_item(item: Item) -> float:
    if isinstance(item, Leaf):
        return size(item.relation)
    left, right = size_of_item(item.left), size_of_item(item.right)
    return left * right if item.kind == "cross join" else left * right / 4 + 0.5 * (left + right)


def size(relation: Relation) -> float:
    match relation:
        case Scan():
            return ROWS
        case Values(rows=rows):
            return len(rows)
        case Series(child=child):
            return 4 if child is None else 2.5 * size(child)
        case Filter(child=child):
            return 0.6 * size(child)
        case Aggregate(child=child, keys=keys, sets=sets):
            factor = 1 if sets is None else 3
            return 1 if not keys else factor * min(size(child), 20)
        case Distinct(child=child):
            return 0.8 * size(child)
        case TopK(limit=limit, child=child):
            return min(limit, size(child))
        case SetOperation(left=left, right=right):
            return size(left) + size(right)
        case Recursion(left=left):
            return 3 * size(left)
        case Join(kind=kind, left=left, right=right, lateral=lateral):
            product = size(left) * size(right)
            if lateral:
                return product / 2
            return product if kind == "cross join" else product / 3 + 0.5 * size(left)
        case From(operator="key join"):
            return 2 * ROWS
        case From(parts=parts, where=where):
            product = 1.0
            for part in parts:
                product *= size_of_item(part)
            return product / 4.0 ** min(len(where), len(parts) - 1)
    (child,) = children(relation)
    return size(child)
