"""A tree that lost some columns, made whole again: NULL in their places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fuzz.from_clause import From, all_leaves, mended
from fuzz.inside import children, scalars, with_children, with_scalars
from fuzz.relations import (
    Again,
    Aggregate,
    Distinct,
    Fit,
    Join,
    Named,
    Order,
    Recursion,
    Relation,
    SetOperation,
    TopK,
)
from fuzz.terms import Query, Ref, Scalar, Term, null


def repair(relation: Relation, outer: frozenset[str] = frozenset()) -> Relation | None:
    """The tree with every name in it defined; None where nothing sensible is left."""
    below: list[Relation] = []
    for place, child in enumerate(children(relation)):
        reached = outer
        if isinstance(relation, Join) and relation.lateral and place == 1:
            reached |= _names(below[0].columns)
        if isinstance(relation, From) and all_leaves(relation)[place].lateral:
            reached |= frozenset(name for one in below for name in _names(one.columns))
        whole = repair(child, reached)
        if whole is None or not whole.columns:
            return None
        below.append(whole)
    if isinstance(relation, Again):
        named = below[0] if below else None
        if not isinstance(named, Named):
            return None
        known = _names(named.columns)
        fields = tuple((name, ref) for name, ref in relation.fields if name in known)
        return replace(relation, child=named, fields=fields) if fields else None
    relation = with_children(relation, tuple(below))
    inside = frozenset(name for child in below for name in _names(child.columns))
    if isinstance(relation, From):
        relation = mended(relation)
        inside |= _names(relation.columns)
    known = inside | outer
    new: list[Scalar] = []
    for scalar in scalars(relation):
        mended_scalar = _mended(scalar, known)
        if mended_scalar is None:
            return None
        new.append(mended_scalar)
    relation = with_scalars(relation, tuple(new))
    match relation:
        case Aggregate(keys=keys, calls=calls):
            kept = tuple(key for key in keys if key.name in inside)
            if relation.sets is not None and len(kept) < len(keys):
                relation = replace(relation, sets=None)
            if not kept and not calls:
                return None
            return replace(relation, keys=kept)
        case Distinct(on=on, order=order):
            if on and not _orders(on, inside):
                return None
            return replace(relation, on=_orders(on, inside), order=_orders(order, inside))
        case TopK(order=order, child=child):
            # The order has to stay total where it was.
            kept_order = _orders(order, inside)
            return replace(relation, order=kept_order) if kept_order else None
        case Join(merged=merged, left=left, right=right) if merged:
            names = tuple(
                pair
                for pair in merged
                if pair[1].name in _names(left.columns) and pair[2].name in _names(right.columns)
            )
            return replace(relation, merged=names) if names else None
        case SetOperation(names=names, left=left, right=right):
            kinds = [ref.kind for ref in names]
            sides = ([r.kind for r in left.columns], [r.kind for r in right.columns])
            return relation if sides == (kinds, kinds) else None
        case Recursion(left=left, right=right):
            sides = ([r.kind for r in left.columns], [r.kind for r in right.columns])
            return relation if sides == (["int", "int"], ["int", "int"]) else None
        case Fit(outputs=()):
            return None
    return relation


def _names(columns: Iterable[Ref]) -> frozenset[str]:
    return frozenset(ref.name for ref in columns)


def _orders(orders: tuple[Order, ...], known: frozenset[str]) -> tuple[Order, ...]:
    return tuple(order for order in orders if order.ref.name in known)


def _mended(scalar: Scalar, known: frozenset[str]) -> Scalar | None:
    if isinstance(scalar, Ref):
        return scalar if scalar.name in known else null(scalar.kind)
    parts: list[Ref | Term | Query] = []
    for part in scalar.parts:
        if isinstance(part, Query):
            relation = repair(part.relation, known)
            if relation is None:
                return None
            names = tuple(name for name in part.names if name in _names(relation.columns))
            if len(names) < len(part.names):
                # Another row of as many columns will do for a question about existence.
                own = tuple(ref.name for ref in relation.columns)
                if len(own) < len(part.names):
                    return None
                names = own[: len(part.names)]
            parts.append(Query(relation, names))
        else:
            whole = _mended(part, known)
            if whole is None:
                return None
            parts.append(whole)
    return replace(scalar, parts=tuple(parts))
