"""A whole FROM clause: items between commas, joins in any nesting, and how far names reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fuzz.terms import Ref, Scalar

if TYPE_CHECKING:
    from fuzz.relations import Relation


@dataclass(frozen=True)
class Leaf:
    """A relation under an alias; `labels` are names of its columns that others have, too."""

    relation: Relation
    labels: tuple[tuple[str, str], ...] = ()
    lateral: bool = False

    def label(self, ref: Ref) -> str:
        return dict(self.labels).get(ref.name, ref.name)


@dataclass(frozen=True)
class Pair:
    """A join. `merged` are the labels of USING or NATURAL, each with the name of the one column.

    With `alias` it is one relation for all around it.
    """

    kind: str
    left: Item
    right: Item
    condition: Scalar | None = None
    merged: tuple[tuple[str, Ref], ...] = ()
    natural: bool = False
    parentheses: bool = False
    alias: bool = False


Item = Leaf | Pair


@dataclass(frozen=True)
class From:
    """Items between commas and the conditions of WHERE."""

    parts: tuple[Item, ...]
    where: tuple[Scalar, ...] = ()
    operator: str | None = "from clause"
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Ref, ...]:
        found = [ref for part in self.parts for ref in qualified(part)]
        return (*found, *(ref for ref, _ in plain(*self.parts)))


def qualified(item: Item) -> tuple[Ref, ...]:
    """The columns that are reached by the alias of a relation."""
    if isinstance(item, Leaf):
        return item.relation.columns
    if item.alias:
        return tuple(ref for label, ref in only(space(item)))
    return (*qualified(item.left), *qualified(item.right))


def space(item: Item) -> tuple[tuple[str, Ref], ...]:
    """The columns that are reached without an alias, by their labels."""
    if isinstance(item, Leaf):
        return tuple((item.label(ref), ref) for ref in item.relation.columns)
    gone = {label for label, _ in item.merged}
    both = (*space(item.left), *space(item.right))
    return (*item.merged, *(one for one in both if one[0] not in gone))


def only(named: tuple[tuple[str, Ref], ...]) -> tuple[tuple[str, Ref], ...]:
    """Those whose label no other has."""
    times = Counter(label for label, _ in named)
    return tuple(one for one in named if times[one[0]] == 1)


def plain(*items: Item) -> tuple[tuple[Ref, str], ...]:
    """The merged columns that can be named beside these items, which have no alias."""
    mine = {ref for item in items for ref in _merged(item)}
    named = only(tuple(one for item in items for one in space(item)))
    return tuple((ref, label) for label, ref in named if ref in mine)


def _merged(item: Item) -> Iterator[Ref]:
    if isinstance(item, Pair) and not item.alias:
        yield from (ref for _, ref in item.merged)
        yield from _merged(item.left)
        yield from _merged(item.right)


def leaves(item: Item) -> Iterator[Leaf]:
    if isinstance(item, Leaf):
        yield item
    else:
        yield from leaves(item.left)
        yield from leaves(item.right)


def conditions(item: Item) -> Iterator[Scalar]:
    if isinstance(item, Pair):
        yield from conditions(item.left)
        yield from conditions(item.right)
        if item.condition is not None:
            yield item.condition


def all_leaves(clause: From) -> tuple[Leaf, ...]:
    return tuple(leaf for part in clause.parts for leaf in leaves(part))


def all_conditions(clause: From) -> tuple[Scalar, ...]:
    return (*(one for part in clause.parts for one in conditions(part)), *clause.where)


def with_relations(clause: From, new: tuple[Relation, ...]) -> From:
    """The clause with other relations in the places of its leaves."""
    rest = iter(new)

    def changed(item: Item) -> Item:
        if isinstance(item, Leaf):
            return replace(item, relation=next(rest))
        left = changed(item.left)
        return replace(item, left=left, right=changed(item.right))

    return replace(clause, parts=tuple(changed(part) for part in clause.parts))


def with_conditions(clause: From, new: tuple[Scalar, ...]) -> From:
    rest = iter(new)

    def changed(item: Item) -> Item:
        if isinstance(item, Leaf):
            return item
        left, right = changed(item.left), changed(item.right)
        condition = None if item.condition is None else next(rest)
        return replace(item, left=left, right=right, condition=condition)

    parts = tuple(changed(part) for part in clause.parts)
    return replace(clause, parts=parts, where=tuple(rest))


def mended(clause: From) -> From:
    """Without the labels that only one side has any more."""

    def changed(item: Item) -> Item:
        if isinstance(item, Leaf):
            return item
        left, right = changed(item.left), changed(item.right)
        sides = [{label for label, _ in only(space(side))} for side in (left, right)]
        kept = tuple(one for one in item.merged if one[0] in sides[0] & sides[1])
        lost = item.merged and not kept and not item.natural
        kind = "cross join" if lost else item.kind
        return replace(item, left=left, right=right, merged=kept, kind=kind)

    return replace(clause, parts=tuple(changed(part) for part in clause.parts))


def smaller(clause: From) -> Iterator[From]:
    """Clauses with one item, join or condition less."""
    for i, part in enumerate(clause.parts):
        around = (clause.parts[:i], clause.parts[i + 1 :])
        if len(clause.parts) > 1:
            yield replace(clause, parts=(*around[0], *around[1]))
        for less in _smaller_item(part):
            yield replace(clause, parts=(*around[0], less, *around[1]))
    for i in range(len(clause.where)):
        yield replace(clause, where=clause.where[:i] + clause.where[i + 1 :])


def _smaller_item(item: Item) -> Iterator[Item]:
    if isinstance(item, Leaf):
        if item.labels:
            yield replace(item, labels=())
        return
    yield item.left
    yield item.right
    if item.alias or item.parentheses:
        yield replace(item, alias=False, parentheses=False)
    for less in _smaller_item(item.left):
        yield replace(item, left=less)
    for less in _smaller_item(item.right):
        yield replace(item, right=less)
