"""The shapes of views that a run counts one by one: what was accepted, refused and refreshed."""

from __future__ import annotations

from collections.abc import Iterator

from fuzz.from_clause import From, Item, Pair
from fuzz.inside import children, scalars
from fuzz.relations import Aggregate, Join, Relation
from fuzz.terms import Scalar, Term, queries_of, walk

SHAPES = (
    "star join", "snowflake join", "chain join", "wide join", "redundant equalities",
    "cyclic equalities", "expression key", "expression key of an outer join", "nested from",
    "parentheses", "comma beside join", "lateral before join", "with named twice",
    "with of groups named twice", "nested with", "mixed numbers", "case in aggregate",
    "figures of one relation", "grouping sets over a join",
)  # fmt: skip
# Where a function or an operator of the user has the name of a built-in one.
SHADOWED = "shadowed names"
# The operators that have a shape most often, for those who want no other.
OPERATOR_OF = {
    "star join": "key join",
    "snowflake join": "key join",
    "chain join": "key join",
    "wide join": "key join",
    "redundant equalities": "key join",
    "cyclic equalities": "key join",
    "nested from": "from clause",
    "parentheses": "from clause",
    "comma beside join": "from clause",
    "lateral before join": "from clause",
    "with named twice": "with",
    "with of groups named twice": "with",
    "nested with": "with",
    "case in aggregate": "aggregate",
    "figures of one relation": "scalar",
    "grouping sets over a join": "grouping sets",
}
JOINS = ("left join", "right join", "full join")


def shapes_of(relation: Relation) -> frozenset[str]:
    """The shapes that can be told from the tree: the others are items of its operators."""
    found: set[str] = set()
    for one in every(relation):
        if any(_has_key(condition) for condition in _outer_conditions(one)):
            found.add("expression key of an outer join")
        if isinstance(one, Aggregate) and one.sets is not None and _joins(one.child):
            found.add("grouping sets over a join")
    return frozenset(found)


def every(relation: Relation) -> Iterator[Relation]:
    """The tree's operators, those of inner queries among them."""
    yield relation
    for scalar in scalars(relation):
        for query in queries_of(scalar):
            yield from every(query.relation)
    for child in children(relation):
        yield from every(child)


def _joins(relation: Relation) -> bool:
    return any(isinstance(one, Join | From) for one in every(relation))


def _outer_conditions(relation: Relation) -> Iterator[Scalar]:
    match relation:
        case Join(kind=kind, condition=condition) if kind in JOINS and condition is not None:
            yield condition
        case From(parts=parts):
            for part in parts:
                yield from _of_item(part)


def _of_item(item: Item) -> Iterator[Scalar]:
    if isinstance(item, Pair):
        if item.kind in JOINS and item.condition is not None:
            yield item.condition
        yield from _of_item(item.left)
        yield from _of_item(item.right)


def _has_key(condition: Scalar) -> bool:
    return any(isinstance(p, Term) and p.item == "expression key" for p in walk(condition))
