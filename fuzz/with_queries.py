"""WITH queries that are read several times, each time by a filter of its own."""

from __future__ import annotations

from itertools import pairwise

from fuzz.estimate import size
from fuzz.from_clause import From, Item, Leaf, Pair
from fuzz.generate import Generator
from fuzz.relations import Again, Aggregate, Filter, Named, Relation
from fuzz.terms import Scalar, Term

LARGEST = 40


def with_query(g: Generator, budget: int) -> Relation:
    """A query with a name, joined with itself by its columns or by expressions of them."""
    child = g.comparable(g.relation("with", budget))
    items = {"with named twice"}
    if g.chance(0.6) or size(child) > LARGEST:
        child = _grouped(g, child)
        items.add("with of groups named twice")
    form = "cte"
    if g.chance(0.4):
        form = "nested cte"
        items.add("nested with")
    named = Named(child, form)
    readings: list[Relation] = [named]
    for _ in range(g.random.choice((1, 1, 2))):
        fields = tuple((ref.name, g.ref(ref.kind)) for ref in child.columns)
        readings.append(Again(named, fields))
    leaves = [Leaf(_filtered(g, one)) for one in readings]
    conditions: list[Scalar] = []
    for one, other in pairwise(readings):
        pair = g.terms.equality(one.columns, other.columns, wild=True)
        conditions.append(pair or Term("bool", "true"))
    if g.chance(0.5):
        items.add("comma join")
        parts: tuple[Item, ...] = tuple(leaves)
        return From(parts, tuple(conditions), "with", tuple(sorted(items)))
    joined: Item = leaves[0]
    for leaf, condition in zip(leaves[1:], conditions, strict=True):
        kind = g.random.choice(("inner join", "left join", "full join"))
        items.add(kind)
        joined = Pair(kind, joined, leaf, condition)
    return From((joined,), (), "with", tuple(sorted(items)))


def _grouped(g: Generator, child: Relation) -> Relation:
    keys = [ref for ref in child.columns if ref.kind not in ("float", "char")]
    some = tuple(g.random.sample(keys, min(len(keys), g.random.choice((1, 2)))))
    calls = [g.terms.aggregate(child.columns) for _ in range(g.random.randint(1, 2))]
    named = tuple((g.ref(call.kind), call) for call in calls)
    return Aggregate(child, some, named, None, "aggregate", ("group by",))


def _filtered(g: Generator, reading: Relation) -> Relation:
    if g.chance(0.4):
        return reading
    return Filter(reading, g.terms.condition(reading.columns, 1), None)
