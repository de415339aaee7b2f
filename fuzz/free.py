"""Which columns a tree uses without having them: those of the query around it."""

from __future__ import annotations

from fuzz.from_clause import From, all_leaves
from fuzz.inside import children, scalars
from fuzz.relations import Again, Aggregate, Distinct, Join, Relation, TopK
from fuzz.terms import Scalar, queries_of, refs_of


def free_names(relation: Relation) -> frozenset[str]:
    """The names that come from outside."""
    if isinstance(relation, Again):
        return free_names(relation.child)
    below = children(relation)
    inside = frozenset(ref.name for child in below for ref in child.columns)
    used: frozenset[str] = frozenset()
    for scalar in scalars(relation):
        used |= refs_of(scalar) | names_in_queries(scalar)
    match relation:
        case Aggregate(keys=keys):
            used |= {key.name for key in keys}
        case Distinct(on=on, order=order):
            used |= {one.ref.name for one in (*on, *order)}
        case TopK(order=order):
            used |= {one.ref.name for one in order}
        case _:
            pass
    found = used - inside
    for place, child in enumerate(below):
        from_beside = isinstance(relation, Join) and relation.lateral and child == relation.right
        if isinstance(relation, From):
            from_beside = all_leaves(relation)[place].lateral
        names = free_names(child)
        found |= names - inside if from_beside else names
    return found


def names_in_queries(scalar: Scalar) -> frozenset[str]:
    """The columns that the queries in an expression take from outside."""
    names = (free_names(query.relation) for query in queries_of(scalar))
    return frozenset().union(*names)
