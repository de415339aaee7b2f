"""What a relation is made of, and the same relation made of something else."""

from __future__ import annotations

from dataclasses import replace

from fuzz.from_clause import (
    From,
    all_conditions,
    all_leaves,
    with_conditions,
    with_relations,
)
from fuzz.relations import (
    Aggregate,
    Extend,
    Filter,
    Fit,
    Join,
    Recursion,
    Relation,
    Scan,
    Series,
    SetOperation,
    Values,
    Window,
)
from fuzz.terms import Scalar


def children(relation: Relation) -> tuple[Relation, ...]:
    match relation:
        case Scan() | Values():
            return ()
        case Series(child=child):
            return () if child is None else (child,)
        case Join() | SetOperation() | Recursion():
            return (relation.left, relation.right)
        case From():
            return tuple(leaf.relation for leaf in all_leaves(relation))
        case _:
            return (relation.child,)


def with_children(relation: Relation, new: tuple[Relation, ...]) -> Relation:
    match relation:
        case Scan() | Values():
            return relation
        case Series(child=None):
            return relation
        case Join() | SetOperation() | Recursion():
            return replace(relation, left=new[0], right=new[1])
        case From():
            return with_relations(relation, new)
        case _:
            return replace(relation, child=new[0])


def scalars(relation: Relation) -> tuple[Scalar, ...]:
    """The expressions of an operator, not of those below it."""
    match relation:
        case Filter(condition=condition):
            return (condition,)
        case Extend(added=pairs) | Window(added=pairs) | Fit(outputs=pairs):
            return tuple(scalar for _, scalar in pairs)
        case Aggregate(calls=pairs):
            return tuple(scalar for _, scalar in pairs)
        case Join(condition=condition):
            return () if condition is None else (condition,)
        case From():
            return all_conditions(relation)
        case Series(call=call):
            return (call,)
        case Values(rows=rows):
            return tuple(scalar for row in rows for scalar in row)
        case _:
            return ()


def with_scalars(relation: Relation, new: tuple[Scalar, ...]) -> Relation:
    match relation:
        case Filter():
            return replace(relation, condition=new[0])
        case Extend(added=pairs) | Window(added=pairs):
            refs = (ref for ref, _ in pairs)
            return replace(relation, added=tuple(zip(refs, new, strict=True)))
        case Fit(outputs=pairs):
            refs = (ref for ref, _ in pairs)
            return replace(relation, outputs=tuple(zip(refs, new, strict=True)))
        case Aggregate(calls=pairs):
            refs = (ref for ref, _ in pairs)
            return replace(relation, calls=tuple(zip(refs, new, strict=True)))
        case Join(condition=condition):
            return relation if condition is None else replace(relation, condition=new[0])
        case From():
            return with_conditions(relation, new)
        case Series():
            return replace(relation, call=new[0])
        case Values(rows=rows):
            width = len(rows[0])
            starts = range(0, len(new), width)
            return replace(relation, rows=tuple(new[i : i + width] for i in starts))
        case _:
            return relation
